/** Fingers on the image: one draws, several move it. A pen and a mouse are not counted. */

import PointerInteraction from "ol/interaction/Pointer";
import type MapBrowserEvent from "ol/MapBrowserEvent";

export class TouchCount {
  private readonly down = new Set<number>();

  constructor(
    target: HTMLElement,
    private readonly showNotice: (isSeveral: boolean) => void,
    leaving: AbortSignal,
  ) {
    target.addEventListener("pointerdown", (event) => this.add(event), { capture: true });
    for (const type of ["pointerup", "pointercancel"] as const) {
      addEventListener(type, (event) => this.remove(event), { capture: true, signal: leaving });
    }
  }

  private add(event: PointerEvent): void {
    if (event.pointerType !== "touch") return;
    this.down.add(event.pointerId);
    if (this.down.size === 2) this.showNotice(true);
  }

  /** Re-activate the tool when the last finger has left. */
  private remove(event: PointerEvent): void {
    if (this.down.delete(event.pointerId) && this.down.size === 0) this.showNotice(false);
  }
}

/** Pans with two fingers while a tool is active; without one the map does. */
export class TwoFingerPan extends PointerInteraction {
  private last: number[] = [0, 0];

  constructor(private readonly isNeeded: () => boolean) {
    super();
  }

  override handleDownEvent(event: MapBrowserEvent): boolean {
    if (this.targetPointers.length !== 2 || !this.isNeeded()) return false;
    this.last = this.middle(event);
    return true;
  }

  override handleDragEvent(event: MapBrowserEvent): void {
    if (this.targetPointers.length !== 2) return;
    const { map } = event;
    const now = this.middle(event);
    const [x0 = 0, y0 = 0] = map.getCoordinateFromPixel(this.last);
    const [x1 = 0, y1 = 0] = map.getCoordinateFromPixel(now);
    const [x = 0, y = 0] = map.getView().getCenter() ?? [];
    map.getView().setCenter([x + x0 - x1, y + y0 - y1]);
    this.last = now;
  }

  override handleUpEvent(): boolean {
    return this.targetPointers.length > 0;
  }

  /** Allow zoom and rotation by two fingers. */
  override stopDown(): boolean {
    return false;
  }

  private middle({ map }: MapBrowserEvent): number[] {
    const pixels = this.targetPointers.map((pointer) => map.getEventPixel(pointer));
    const [[ax = 0, ay = 0] = [], [bx = 0, by = 0] = []] = pixels;
    return [(ax + bx) / 2, (ay + by) / 2];
  }
}
