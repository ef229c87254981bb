/** How fast a transfer goes and how long it will take, and both in words. */

/** Of the last so many seconds: long enough not to jump, short enough to follow a change. */
const WINDOW_S = 8;
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

export class Pace {
  private seen: { at: number; bytes: number }[] = [];

  /** `at` in seconds, `bytes` of the file that have arrived. */
  add(at: number, bytes: number): void {
    this.seen.push({ at, bytes });
    while (this.seen.length > 2 && at - (this.seen[0]?.at ?? at) > WINDOW_S) this.seen.shift();
  }

  /** After a pause nothing of what was before it counts. */
  reset(): void {
    this.seen = [];
  }

  /** Bytes a second; null where too little is known. */
  get rate(): number | null {
    const [first, last] = [this.seen[0], this.seen.at(-1)];
    if (!first || !last || last.at - first.at < 1) return null;
    return (last.bytes - first.bytes) / (last.at - first.at);
  }

  /** Seconds until `total` bytes have arrived; null where too little is known. */
  left(total: number): number | null {
    const { rate } = this;
    const arrived = this.seen.at(-1)?.bytes ?? 0;
    return rate && rate > 0 ? (total - arrived) / rate : null;
  }
}

export function sizeText(bytes: number): string {
  let [size, unit] = [bytes, 0];
  while (size >= 1024 && unit < UNITS.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${unit === 0 ? size.toFixed(0) : size.toFixed(1)} ${UNITS[unit] ?? ""}`;
}

export function timeText(seconds: number): string {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}
