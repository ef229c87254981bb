/** An event whose first frame is set and whose last is not set yet. */

export class OpenSpan {
  private first: number | null = null;

  get isOpen(): boolean {
    return this.first !== null;
  }

  begin(index: number): void {
    this.first = index;
  }

  cancel(): void {
    this.first = null;
  }

  /** First and last frame if it ended here, in the order of the video; null if it was not begun. */
  upTo(index: number): [number, number] | null {
    return this.first === null ? null : [Math.min(this.first, index), Math.max(this.first, index)];
  }

  /** End it; null if it was not begun. */
  end(index: number): [number, number] | null {
    const span = this.upTo(index);
    this.first = null;
    return span;
  }
}
