/** First and last frame index of a span; either end may be open. */

export class SpanEnds {
  private from: number | null = null;
  private to: number | null = null;

  get isSet(): boolean {
    return this.from !== null || this.to !== null;
  }

  /** An end that would lie before the beginning is removed. */
  begin(index: number): void {
    this.from = index;
    if (this.to !== null && this.to <= index) this.to = null;
  }

  /** A beginning that would lie after the end is removed. */
  end(index: number): void {
    this.to = index;
    if (this.from !== null && this.from >= index) this.from = null;
  }

  clear(): void {
    this.from = this.to = null;
  }

  /** First and last frame of the span in a video of `count` frames. */
  indexRange(count: number): [number, number] {
    return [this.from ?? 0, this.to ?? count - 1];
  }
}

/** A wait below this many seconds is given in seconds, a longer one in minutes. */
const IN_MINUTES_FROM_S = 90;

/** Text of the estimated building time; `seconds` is null before the first mosaic was built. */
export function estimateText(frames: number, seconds: number | null): string {
  const count = `${frames.toLocaleString("en")} ${frames === 1 ? "frame" : "frames"}`;
  if (seconds === null) return count;
  const wait = seconds < IN_MINUTES_FROM_S ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`;
  return `${count}, about ${wait}`;
}
