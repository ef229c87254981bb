/**
 * Frames as images: fetched by PTS, with the neighbours of the current frame in advance. Fetched frames stay compressed
 * for a while; the next ones stay decoded, so that a step only has to draw.
 */

/** Memory for decoded frames: thirty of 1080p, and at least a few of any size. */
const DECODED_BYTES = 256 * 2 ** 20;
const MIN_DECODED = 8;
const MAX_DECODED = 64;
/** Memory for compressed frames: some ten seconds in both directions at 1080p. */
const FETCHED_BYTES = 128 * 2 ** 20;
/** Parallel prefetch requests; the browser's other connections stay free. */
const PARALLEL_PREFETCHES = 2;

interface Fetched {
  blob: Promise<Blob>;
  bytes: number;
}

export class FrameImages {
  private readonly fetched = new Map<number, Fetched>();
  private readonly decoded = new Map<number, Promise<ImageBitmap>>();
  private readonly maxDecoded: number;
  private fetchedBytes = 0;
  /** PTS still to be made ready, the most urgent first. */
  private queue: number[] = [];
  private underWay = 0;

  constructor(
    private readonly urlTemplate: string,
    frameBytes: number,
  ) {
    const fitting = Math.floor(DECODED_BYTES / Math.max(frameBytes, 1));
    this.maxDecoded = Math.min(Math.max(fitting, MIN_DECODED), MAX_DECODED);
  }

  /** Largest number of decoded frames. */
  get capacity(): number {
    return this.maxDecoded;
  }

  /** True if a step to this frame needs no wait for the network. */
  has(pts: number): boolean {
    return this.decoded.has(pts) || (this.fetched.get(pts)?.bytes ?? 0) > 0;
  }

  get(pts: number): Promise<ImageBitmap> {
    const image = this.decoded.get(pts) ?? this.fetch(pts).then((blob) => createImageBitmap(blob));
    this.decoded.delete(pts);
    this.decoded.set(pts, image); // newest last
    image.catch(() => this.decoded.delete(pts));
    this.dropDecoded();
    return image;
  }

  /** Prepare these frames in this order; earlier requests that are not among them are cancelled. */
  prefetch(times: number[]): void {
    this.queue = times.filter((pts) => !this.decoded.has(pts));
    this.startFetches();
  }

  private startFetches(): void {
    while (this.underWay < PARALLEL_PREFETCHES && this.queue.length) {
      const pts = this.queue.shift();
      if (pts === undefined) return;
      this.underWay += 1;
      void this.get(pts)
        .catch(() => undefined) // requested again when it is needed, and reported then
        .finally(() => {
          this.underWay -= 1;
          this.startFetches();
        });
    }
  }

  private fetch(pts: number): Promise<Blob> {
    const known = this.fetched.get(pts);
    this.fetched.delete(pts);
    const entry: Fetched = known ?? { blob: this.fetchFrame(pts), bytes: 0 };
    this.fetched.set(pts, entry);
    if (!known) void this.measure(pts, entry);
    return entry.blob;
  }

  private async measure(pts: number, entry: Fetched): Promise<void> {
    try {
      entry.bytes = (await entry.blob).size;
      this.fetchedBytes += entry.bytes;
    } catch {
      this.fetched.delete(pts);
    }
    for (const [oldest, { bytes }] of this.fetched) {
      if (this.fetchedBytes <= FETCHED_BYTES) return;
      if (bytes === 0) continue; // still under way
      this.fetched.delete(oldest);
      this.fetchedBytes -= bytes;
    }
  }

  private async fetchFrame(pts: number): Promise<Blob> {
    const response = await fetch(this.urlTemplate.replace("{pts}", String(pts)));
    if (!response.ok) throw new Error(`The frame could not be read (${response.status}).`);
    return response.blob();
  }

  private dropDecoded(): void {
    for (const [pts, image] of this.decoded) {
      if (this.decoded.size <= this.maxDecoded) return;
      this.decoded.delete(pts);
      void image.then((bitmap) => this.release(bitmap)).catch(() => undefined);
    }
  }

  /** Free the memory of a bitmap, unless it is on screen. */
  private release(bitmap: ImageBitmap): void {
    if (bitmap !== this.shown) bitmap.close();
  }

  /** The bitmap on screen, which has to stay drawable. */
  shown: ImageBitmap | null = null;
}

/** Shares of prepared frames: most are in the direction of the last step. */
const AHEAD_SHARE = 0.6;
const BEHIND_SHARE = 0.25;
/** Share of jumps in both directions, fetched last: each costs the server a seek. */
const JUMP_SHARE = 0.15;
const MIN_JUMPS = 2;
/** Frames of a jump, as the keys C and V make it. */
export const JUMP = 10;

/**
 * The frames to make ready around `index` of `count`, the most urgent first: `stride` apart in the
 * direction of the last step, with every fourth from the other side. After a jump the one back comes
 * second; after a single step the jumps both ways come last.
 */
export function prefetchOrder(index: number, stride: number, count: number, capacity: number): number[] {
  const step = stride === 0 ? 1 : stride;
  const [on, back] = [Math.floor(capacity * AHEAD_SHARE), Math.floor(capacity * BEHIND_SHARE)];
  const order: number[] = [];
  const add = (at: number): void => {
    if (at >= 0 && at < count && !order.includes(at)) order.push(at);
  };
  for (let i = 1; i <= on; i += 1) {
    add(index + i * step);
    if (i === 1 && Math.abs(step) > 1) add(index - step);
    if (i % 3 === 1 && i / 3 < back) add(index - (1 + (i - 1) / 3) * Math.sign(step));
  }
  for (let i = 1; i <= back; i += 1) add(index - i * Math.sign(step));
  if (Math.abs(step) > 1) add(index + Math.sign(step));
  const jumps = Math.abs(step) > 1 ? 0 : Math.max(Math.floor(capacity * JUMP_SHARE), MIN_JUMPS);
  for (let i = 1; i <= jumps; i += 1) add(index + Math.ceil(i / 2) * JUMP * (i % 2 ? step : -step));
  return order;
}
