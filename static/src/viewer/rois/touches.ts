/** How many fingers are on the image: one draws, several move it. A pen and a mouse are not counted. */

export class TouchCount {
  private readonly down = new Set<number>();

  constructor(
    target: HTMLElement,
    private readonly tell: (isSeveral: boolean) => void,
  ) {
    target.addEventListener("pointerdown", (event) => this.add(event), { capture: true });
    for (const type of ["pointerup", "pointercancel"] as const) {
      addEventListener(type, (event) => this.remove(event), { capture: true });
    }
  }

  private add(event: PointerEvent): void {
    if (event.pointerType !== "touch") return;
    this.down.add(event.pointerId);
    if (this.down.size === 2) this.tell(true);
  }

  /** The tool is back in hand once the last finger has left. */
  private remove(event: PointerEvent): void {
    if (this.down.delete(event.pointerId) && this.down.size === 0) this.tell(false);
  }
}
