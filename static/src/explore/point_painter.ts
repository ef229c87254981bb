/**
 * Draws points directly into the pixels of a picture. A hundred thousand take a few milliseconds; as canvas paths they
 * would take several frames.
 */

export interface PointColumns {
  readonly x: readonly number[];
  readonly y: readonly number[];
}

/** Transform to image pixels: pixel = point * scale + (left, top). */
export interface PointTransform {
  readonly scale: number;
  readonly left: number;
  readonly top: number;
}

export const HIDDEN = 0; // not a colour, as colours are opaque
const SHOWN = 230; // opacity of a point, of 255
const DIMMED = 38; // opacity while others are chosen
const ROUND_FROM = 5; // pixels; smaller points are drawn as squares

/** A colour `#rrggbb` as the bytes of a picture have it (red first), opaque; never `HIDDEN`. */
export function rgbaOf(color: string): number {
  const value = parseInt(color.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

/**
 * A picture that is `margin` larger on each side than its visible part, so that no dot is cut off. `pixels` are 32-bit
 * values with the least significant byte first, as on all machines that browsers support.
 */
export class PointImage {
  readonly width: number;
  readonly height: number;
  readonly bytes: Uint8ClampedArray<ArrayBuffer>;
  private readonly pixels: Uint32Array;

  constructor(
    private readonly seenWidth: number,
    private readonly seenHeight: number,
    readonly margin: number,
  ) {
    this.width = seenWidth + 2 * margin;
    this.height = seenHeight + 2 * margin;
    this.bytes = new Uint8ClampedArray(4 * this.width * this.height);
    this.pixels = new Uint32Array(this.bytes.buffer);
  }

  fits(seenWidth: number, seenHeight: number, margin: number): boolean {
    return this.seenWidth === seenWidth && this.seenHeight === seenHeight && this.margin === margin;
  }

  /**
   * Paint all points again, each `size` pixels wide, at most `margin`. Those whose ink is `HIDDEN` are left out; where
   * there are `chosen` (1 for each that is), the others are dimmed and below.
   */
  paint(places: PointColumns, rgba: Uint32Array, chosen: Uint8Array | null, view: PointTransform, size: number): void {
    this.pixels.fill(0);
    if (!chosen) return this.stampAll(places, rgba, null, 1, view, stampOf(size, SHOWN, this.width));
    this.stampAll(places, rgba, chosen, 0, view, stampOf(size, DIMMED, this.width));
    this.stampAll(places, rgba, chosen, 1, view, stampOf(size, SHOWN, this.width));
  }

  private stampAll(
    { x, y }: PointColumns,
    rgba: Uint32Array,
    chosen: Uint8Array | null,
    target: number,
    { scale, left, top }: PointTransform,
    stamp: Stamp,
  ): void {
    const { offsets, alphas, side } = stamp;
    const { pixels, width, height } = this;
    const moveX = left + this.margin - side / 2;
    const moveY = top + this.margin - side / 2;
    for (let at = 0; at < rgba.length; at++) {
      const color = rgba[at] ?? 0;
      if (color === HIDDEN || (chosen && chosen[at] !== target)) continue;
      const column = Math.round((x[at] ?? 0) * scale + moveX);
      const row = Math.round((y[at] ?? 0) * scale + moveY);
      if (column < 0 || row < 0 || column + side > width || row + side > height) continue;
      const corner = row * width + column;
      for (let n = 0; n < offsets.length; n++) {
        const pixel = corner + (offsets[n] ?? 0);
        const alpha = alphas[n] ?? 0;
        // The soft rim of a dot must not lighten another dot.
        if (alpha >= (pixels[pixel] ?? 0) >>> 24) pixels[pixel] = (color & 0xffffff) | (alpha << 24);
      }
    }
  }
}

/** Pixels of a dot: offset from the dot's first corner in the picture, and opacity. */
interface Stamp {
  readonly side: number;
  readonly offsets: Int32Array;
  readonly alphas: Uint8Array;
}

function stampOf(size: number, opaque: number, width: number): Stamp {
  const side = Math.max(1, Math.round(size));
  const offsets: number[] = [];
  const alphas: number[] = [];
  for (let row = 0; row < side; row++) {
    for (let column = 0; column < side; column++) {
      const far = Math.hypot(column + 0.5 - side / 2, row + 0.5 - side / 2);
      const cover = side < ROUND_FROM ? 1 : Math.max(0, Math.min(1, side / 2 - far + 0.5));
      if (cover === 0) continue;
      offsets.push(row * width + column);
      alphas.push(Math.round(cover * opaque));
    }
  }
  return { side, offsets: Int32Array.from(offsets), alphas: Uint8Array.from(alphas) };
}
