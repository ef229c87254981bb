/** Rate and remaining time of a transfer, and the size of its chunks. */

/** The pace is measured over this many seconds: long enough not to jump, short enough to follow a change. */
const WINDOW_S = 8;
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

const FIRST_CHUNK_MIB = 16; // a line of 100 Mbit/s sends it in little more than a second
const MIN_CHUNK_MIB = 4; // smaller chunks have more overhead than data
const MAX_CHUNK_MIB = 128; // larger chunks save no measurable overhead
const GROWS_BELOW_S = 2; // of one chunk; below, overhead is noticeable
const SHRINKS_ABOVE_S = 10; // of one chunk; above, other transfers wait

export const FIRST_CHUNK_BYTES = FIRST_CHUNK_MIB * 2 ** 20;

/**
 * The size of a file's next piece, in bytes. Each costs the server an authentication and a sync of its disk, so
 * fast lines send large ones; on slow lines several people's transfers take turns, and small ones do not hold others up.
 */
export function nextChunkBytes(bytes: number, seconds: number): number {
  if (seconds < GROWS_BELOW_S) return Math.min(2 * bytes, MAX_CHUNK_MIB * 2 ** 20);
  if (seconds > SHRINKS_ABOVE_S) return Math.max(bytes / 2, MIN_CHUNK_MIB * 2 ** 20);
  return bytes;
}

export class TransferRate {
  private samples: { at: number; bytes: number }[] = [];

  /** `at` in seconds, `bytes` of the file that have arrived. */
  add(at: number, bytes: number): void {
    this.samples.push({ at, bytes });
    while (this.samples.length > 2 && at - (this.samples[0]?.at ?? at) > WINDOW_S) this.samples.shift();
  }

  /** Discard earlier measurements, after a pause. */
  reset(): void {
    this.samples = [];
  }

  /** Bytes a second; null if too little is known. */
  get rate(): number | null {
    const [first, last] = [this.samples[0], this.samples.at(-1)];
    if (!first || !last || last.at - first.at < 1) return null;
    return (last.bytes - first.bytes) / (last.at - first.at);
  }

  /** Seconds until `total` bytes have arrived; null if too little is known. */
  secondsLeft(total: number): number | null {
    const { rate } = this;
    const arrived = this.samples.at(-1)?.bytes ?? 0;
    return rate && rate > 0 ? (total - arrived) / rate : null;
  }
}

/** Percentage, rounded down, so that 100 % means complete. */
export function percentText(part: number, total: number): string {
  return `${Math.floor((100 * part) / Math.max(total, 1))} %`;
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
