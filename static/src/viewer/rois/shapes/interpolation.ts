/** Interpolation of an ROI of a video between two key frames. */

import { inHundredths } from "../../lib/units";
import type { Position, RoiGeometry, RoiShape } from "../../lib/types";
import { polygonsOf } from "./areas";
import { boundsOf, ellipseIn } from "./outlines";

export interface ShapedOutline {
  geometry: RoiGeometry;
  shape: RoiShape;
}

/** Number of samples to align the starts of outlines that differ in their number of vertices. */
const PLACES = 64;
/**
 * If vertices moved less than this share of the outline's size, their order is kept: tracked and corrected outlines
 * keep it, and a rotation must not be taken for a shift of the order.
 */
const MAX_SAME_ORDER_SHIFT = 0.5;

/**
 * The outline at `share` of the way from `from` (0) to `to` (1). Ellipses by their bounds; polygons
 * vertex by vertex, or by equal shares of their length where these differ in number. Outlines that
 * differ in their number of parts or holes have no way between: the first stays until the next key frame.
 */
export function interpolatedOutline(from: ShapedOutline, to: ShapedOutline, share: number): ShapedOutline {
  if (share <= 0) return from;
  if (share >= 1) return to;
  if (from.shape === "ellipse" && to.shape === "ellipse") {
    const [a, b] = [boundsOf([from.geometry]), boundsOf([to.geometry])];
    const bounds = a.map((value, side) => mix(value, b[side] ?? value, share));
    return { geometry: ellipseIn(bounds as typeof a), shape: "ellipse" };
  }
  const [a, b] = [polygonsOf(from.geometry), polygonsOf(to.geometry)];
  if (a.length !== b.length || a.some((rings, part) => rings.length !== b[part]?.length)) return from;
  const coordinates = a.map((rings, part) => rings.map((ring, at) => ringBetween(ring, b[part]?.[at] ?? ring, share)));
  const [only] = coordinates;
  if (from.geometry.type === "Polygon" && only) return { geometry: { type: "Polygon", coordinates: only }, shape: "polygon" };
  return { geometry: { type: "MultiPolygon", coordinates }, shape: "polygon" };
}

const mix = (a: number, b: number, share: number): number => a + (b - a) * share;

function ringBetween(from: Position[], to: Position[], share: number): Position[] {
  const [a, b] = matchedRings(open(from), orientedLike(open(from), open(to)));
  const ring = a.map(([x, y], at): Position => {
    const [toX, toY] = b[at] ?? [x, y];
    return inHundredths([mix(x, toX, share), mix(y, toY, share)]);
  });
  const [first] = ring;
  return first ? [...ring, first] : ring;
}

/** Ring without the repeated last vertex. */
function open(ring: Position[]): Position[] {
  const [first, last] = [ring[0], ring.at(-1)];
  return first && last && first[0] === last[0] && first[1] === last[1] ? ring.slice(0, -1) : ring;
}

/** `ring` in the direction of rotation of `like`, beginning at the same vertex. */
function orientedLike(like: Position[], ring: Position[]): Position[] {
  const [first, ...others] = ring;
  return first && signedAreaDoubled(like) * signedAreaDoubled(ring) < 0 ? [first, ...others.reverse()] : ring;
}

/** Twice the signed area: negative for the other direction of rotation. */
function signedAreaDoubled(ring: Position[]): number {
  return ring.reduce((sum, [x, y], at) => {
    const [nextX, nextY] = ring[(at + 1) % ring.length] as Position;
    return sum + x * nextY - nextX * y;
  }, 0);
}

/** Two rings of equal length whose vertices belong together. */
export function matchedRings(from: Position[], to: Position[]): [Position[], Position[]] {
  if (from.length === to.length) return [from, rotatedStart(to, bestStartVertex(from, to))];
  const [a, b] = [resampled(from, PLACES), resampled(to, PLACES)];
  const start = bestStartVertex(a, b) / PLACES;
  const [sharesA, sharesB] = [sharesOf(from), sharesOf(to).map((share) => (share - start + 1) % 1)];
  const all = [...new Set([...sharesA, ...sharesB])].sort((x, y) => x - y);
  return [all.map((share) => placeAt(from, share)), all.map((share) => placeAt(to, (share + start) % 1))];
}

function rotatedStart<T>(items: T[], by: number): T[] {
  return [...items.slice(by), ...items.slice(0, by)];
}

/** Index of the vertex of `to` that corresponds to the first of `from`: the best overlap of the centred outlines. */
function bestStartVertex(from: Position[], to: Position[]): number {
  const [a, b] = [centred(from), centred(to)];
  const count = a.length;
  const squaredDistance = (start: number, enough: number): number => {
    let sum = 0;
    for (let at = 0; at < count && sum < enough; at += 1) {
      const [x, y] = a[at] as Position;
      const [toX, toY] = b[(at + start) % count] as Position;
      sum += (x - toX) ** 2 + (y - toY) ** 2;
    }
    return sum;
  };
  const size = a.reduce((sum, [x, y]) => sum + x * x + y * y, 0);
  if (squaredDistance(0, Infinity) <= size * MAX_SAME_ORDER_SHIFT ** 2) return 0;
  let [best, least] = [0, Infinity];
  for (let start = 0; start < count; start += 1) {
    const sum = squaredDistance(start, least);
    if (sum < least - 1e-9) [best, least] = [start, sum];
  }
  return best;
}

function centred(points: Position[]): Position[] {
  const [x, y] = points.reduce(([sumX, sumY], point) => [sumX + point[0], sumY + point[1]], [0, 0]);
  return points.map((point): Position => [point[0] - x / points.length, point[1] - y / points.length]);
}

/** Position of each vertex as a share of the length. */
function sharesOf(points: Position[]): number[] {
  const sums = lengthsOf(points);
  const total = sums.at(-1) ?? 0;
  return sums.slice(0, -1).map((sum) => (total > 0 ? sum / total : 0));
}

/** The length up to each vertex, and around the whole ring. */
function lengthsOf(points: Position[]): number[] {
  const sums = [0];
  points.forEach(([x, y], at) => {
    const [nextX, nextY] = points[(at + 1) % points.length] as Position;
    sums.push((sums[at] ?? 0) + Math.hypot(nextX - x, nextY - y));
  });
  return sums;
}

function resampled(points: Position[], count: number): Position[] {
  return Array.from({ length: count }, (_, at) => placeAt(points, at / count));
}

/** The place at a share of the ring's length. */
function placeAt(points: Position[], share: number): Position {
  const sums = lengthsOf(points);
  const target = share * (sums.at(-1) ?? 0);
  let at = sums.findLastIndex((sum) => sum <= target + 1e-9);
  at = Math.min(Math.max(at, 0), points.length - 1);
  const [a, b] = [points[at] as Position, points[(at + 1) % points.length] as Position];
  const length = (sums[at + 1] ?? 0) - (sums[at] ?? 0);
  const along = length > 0 ? Math.min(Math.max((target - (sums[at] ?? 0)) / length, 0), 1) : 0;
  return [mix(a[0], b[0], along), mix(a[1], b[1], along)];
}
