/** Growing a region of like colour in a picture, and its outline. Pure: no map, no canvas. */

import type { Position } from "../../lib/types";

export interface Pixels {
  width: number;
  height: number;
  /** RGBA, row by row. */
  data: Uint8ClampedArray;
}

/** 1 where the region is, row by row. */
export type Mask = Uint8Array;

/** The seed's colour is the mean of the pixels this near to it: one noisy pixel decides nothing. */
const SEED_REACH_PX = 2;

/** All pixels connected to the seed whose colour is no further from the seed's than the tolerance (0 to 441). */
export function floodFilled(picture: Pixels, [seedX, seedY]: Position, tolerance: number): Mask {
  const { width, height, data } = picture;
  const mask = new Uint8Array(width * height);
  const [red, green, blue] = meanAround(picture, seedX, seedY);
  const maxSquared = tolerance * tolerance;
  const isLike = (at: number): boolean => {
    const [dr, dg, db] = [(data[4 * at] ?? 0) - red, (data[4 * at + 1] ?? 0) - green, (data[4 * at + 2] ?? 0) - blue];
    return dr * dr + dg * dg + db * db <= maxSquared;
  };
  const first = seedY * width + seedX;
  mask[first] = 1;
  const open = [first];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const x = at % width;
    for (const next of [x > 0 ? at - 1 : -1, x < width - 1 ? at + 1 : -1, at - width, at + width]) {
      if (next < 0 || next >= mask.length || mask[next] || !isLike(next)) continue;
      mask[next] = 1;
      open.push(next);
    }
  }
  return mask;
}

function meanAround({ width, height, data }: Pixels, x: number, y: number): [number, number, number] {
  const sum: [number, number, number] = [0, 0, 0];
  let count = 0;
  for (let row = Math.max(y - SEED_REACH_PX, 0); row <= Math.min(y + SEED_REACH_PX, height - 1); row += 1) {
    for (let column = Math.max(x - SEED_REACH_PX, 0); column <= Math.min(x + SEED_REACH_PX, width - 1); column += 1) {
      for (const channel of [0, 1, 2] as const) sum[channel] += data[4 * (row * width + column) + channel] ?? 0;
      count += 1;
    }
  }
  return [sum[0] / count, sum[1] / count, sum[2] / count];
}

/** Majority filter: removes whiskers and fills pinholes. */
export function smoothed(mask: Mask, width: number, reach: number): Mask {
  const height = mask.length / width;
  const sums = new Uint32Array((width + 1) * (height + 1)); // of all pixels above and left of a corner
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const at = (y + 1) * (width + 1) + x + 1;
      sums[at] = (mask[y * width + x] ?? 0) + (sums[at - 1] ?? 0) + (sums[at - width - 1] ?? 0) - (sums[at - width - 2] ?? 0);
    }
  }
  const corner = (x: number, y: number): number => sums[y * (width + 1) + x] ?? 0;
  const out = new Uint8Array(mask.length);
  for (let y = 0; y < height; y += 1) {
    const [top, bottom] = [Math.max(y - reach, 0), Math.min(y + reach + 1, height)];
    for (let x = 0; x < width; x += 1) {
      const [left, right] = [Math.max(x - reach, 0), Math.min(x + reach + 1, width)];
      const inside = corner(right, bottom) - corner(left, bottom) - corner(right, top) + corner(left, top);
      if (2 * inside > (right - left) * (bottom - top)) out[y * width + x] = 1;
    }
  }
  return out;
}

/** Steps along the edges of pixels with the region on the right: right, down, left, up. */
const STEPS: readonly Position[] = [[1, 0], [0, 1], [-1, 0], [0, -1]];

/** The rings along the edges of a mask's pixels, corners only, holes among them. */
export function ringsOf(mask: Mask, width: number): Position[][] {
  const height = mask.length / width;
  const isIn = (x: number, y: number): boolean => x >= 0 && y >= 0 && x < width && y < height && mask[y * width + x] === 1;
  const isTraced = new Uint8Array(mask.length); // pixels whose upper edge is on a traced ring
  const rings: Position[][] = [];
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      if (!isIn(x, y) || isIn(x, y - 1) || isTraced[y * width + x]) continue;
      rings.push(tracedRing([x, y], isIn, (column, row) => (isTraced[row * width + column] = 1)));
    }
  }
  return rings;
}

function tracedRing(
  start: Position,
  isIn: (x: number, y: number) => boolean,
  markTop: (x: number, y: number) => void,
): Position[] {
  const ring: Position[] = [start];
  let [[x, y], heading] = [start, 0];
  do {
    if (heading === 0) markTop(x, y);
    const [dx, dy] = STEPS[heading] as Position;
    [x, y] = [x + dx, y + dy];
    const next = turnAt(x, y, heading, isIn);
    if (next !== heading) ring.push([x, y]);
    heading = next;
  } while (x !== start[0] || y !== start[1] || heading !== 0);
  return ring;
}

/** Direction after a corner: right if the region ends ahead, so that pixels that share only a corner stay separate. */
function turnAt(x: number, y: number, heading: number, isIn: (x: number, y: number) => boolean): number {
  const ahead: readonly [Position, Position][] = [
    [[x, y - 1], [x, y]],
    [[x, y], [x - 1, y]],
    [[x - 1, y], [x - 1, y - 1]],
    [[x - 1, y - 1], [x, y - 1]],
  ];
  const [left, right] = ahead[heading] as [Position, Position];
  if (!isIn(...right)) return (heading + 1) % 4;
  return isIn(...left) ? (heading + 3) % 4 : heading;
}
