/**
 * Set operations on outlines with holes. Clipper2 computes with integers, and outlines are stored in integer hundredths
 * of a level-0 pixel, so results are exact and valid.
 */

import { Clipper, ClipType, EndType, FillRule, JoinType, PolyTree64 } from "clipper2-ts";
import type { Path64, Paths64, PolyPath64 } from "clipper2-ts";

import type { AreaGeometry, Position, RoiGeometry } from "../../lib/types";
import { isArea } from "./outlines";

/** Clipper computes in whole numbers: a hundredth of a pixel is finer than any pointer. */
const UNITS_PER_PX = 100;
/** Vertices of the circle around the outline to split. */
const ARC_STEPS = 16;

type Rings = Position[][];

/** Empty for points and lines. */
export function polygonsOf(geometry: RoiGeometry): Rings[] {
  if (!isArea(geometry)) return [];
  return geometry.type === "Polygon" ? [geometry.coordinates] : geometry.coordinates;
}

/** One outline of several polygons; null if there are none. */
export function areaOfPolygons(polygons: Rings[]): AreaGeometry | null {
  const [first] = polygons;
  if (!first) return null;
  return polygons.length === 1
    ? { type: "Polygon", coordinates: first }
    : { type: "MultiPolygon", coordinates: polygons };
}

export function unite(geometries: RoiGeometry[]): RoiGeometry | null {
  return combined(ClipType.Union, geometries.flatMap(pathsOf), []);
}

export function subtract(from: RoiGeometry, others: RoiGeometry[]): RoiGeometry | null {
  return combined(ClipType.Difference, pathsOf(from), others.flatMap(pathsOf));
}

export function intersect(first: RoiGeometry, others: RoiGeometry[]): RoiGeometry | null {
  return others.reduce<RoiGeometry | null>(
    (left, other) => left && combined(ClipType.Intersection, pathsOf(left), pathsOf(other)),
    first,
  );
}

/** Area covered by a round brush of this radius along a path. */
export function strokeArea(way: Position[], radius: number): RoiGeometry | null {
  const path = way.map(pointOf);
  const paths = Clipper.inflatePaths([path], radius * UNITS_PER_PX, JoinType.Round, EndType.Round);
  return combined(ClipType.Union, paths, []);
}

/** Remove vertices that are closer than the tolerance to the line between their neighbours. */
export function simplified(geometry: RoiGeometry, tolerancePx: number): RoiGeometry {
  const paths = Clipper.simplifyPaths(pathsOf(geometry), tolerancePx * UNITS_PER_PX, true);
  return combined(ClipType.Union, paths, []) ?? geometry;
}

export function withoutHoles(geometry: RoiGeometry): RoiGeometry {
  const outer = polygonsOf(geometry).map((rings) => rings.slice(0, 1));
  return unite(outer.map((coordinates) => ({ type: "Polygon", coordinates }))) ?? geometry;
}

/**
 * The parts of an outline that crosses itself, each with at least this area; null if it does not, or by less than
 * that area. By the nonzero rule: both loops of an eight, and no hole where the ends of an outline overlap.
 */
export function uncrossed(ring: Position[], leastPx2: number): AreaGeometry | null {
  const union = combined(ClipType.Union, [ring.slice(0, -1).map(pointOf)], []);
  const parts = union ? polygonsOf(union) : [];
  const covered = parts.reduce((sum, rings) => sum + areaPx(rings), 0);
  if (Math.abs(covered - areaPx([ring])) < leastPx2) return null;
  return areaOfPolygons(parts.filter((rings) => areaPx(rings) >= leastPx2));
}

/** Area of possibly crossing rings by the even-odd rule. */
export function areaOf(rings: Rings): RoiGeometry | null {
  return combined(ClipType.Union, rings.map((ring) => ring.map(pointOf)), [], FillRule.EvenOdd);
}

/**
 * The pieces into which a line cuts an outline, the largest first; null if it cuts nothing. The
 * line is extended straight beyond its ends. What it does not touch stays with the largest piece.
 */
export function split(geometry: RoiGeometry, line: Position[]): RoiGeometry[] | null {
  const side = sideOf(geometry, line);
  if (!side) return null;
  const pieces: Rings[] = [];
  const untouched: Rings[] = [];
  for (const rings of polygonsOf(geometry)) {
    const part = pathsOf({ type: "Polygon", coordinates: rings });
    const cut = [ClipType.Intersection, ClipType.Difference].flatMap((type) => {
      const result = combined(type, part, [side], FillRule.EvenOdd);
      return result ? polygonsOf(result) : [];
    });
    if (cut.length > 1) pieces.push(...cut);
    else untouched.push(rings);
  }
  pieces.sort((a, b) => areaPx(b) - areaPx(a));
  const [largest, ...others] = pieces;
  if (!largest) return null;
  return [[largest, ...untouched], ...others.map((rings) => [rings])].map((polygons) => areaOfPolygons(polygons) as RoiGeometry);
}

/** Area of a polygon without its holes. */
export function areaPx(rings: Rings): number {
  const areas = rings.map((ring) => Math.abs(Clipper.area(ring.map(pointOf))) / UNITS_PER_PX ** 2);
  return areas.reduce((sum, area, index) => (index ? sum - area : area), 0);
}

/** The half plane on one side of the line, limited to a circle around the outline. */
function sideOf(geometry: RoiGeometry, line: Position[]): Path64 | null {
  const [first, last] = [line[0], line.at(-1)];
  if (!first || !last || (first[0] === last[0] && first[1] === last[1])) return null;
  const points = [...polygonsOf(geometry).flat(2), ...line];
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const [left, right] = [minOf(xs), -minOf(xs.map((x) => -x))];
  const [top, bottom] = [minOf(ys), -minOf(ys.map((y) => -y))];
  const centre: Position = [(left + right) / 2, (top + bottom) / 2];
  const radius = 2 * Math.hypot(right - left, bottom - top);
  const ends = [onCircle(first, last, centre, radius), onCircle(last, first, centre, radius)] as const;
  const [from, to] = [ends[1], ends[0]].map(([x, y]) => Math.atan2(y - centre[1], x - centre[0])) as [number, number];
  const turn = (to - from + 2 * Math.PI) % (2 * Math.PI);
  const arc = Array.from({ length: ARC_STEPS - 1 }, (_, step): Position => {
    const angle = from + (turn * (step + 1)) / ARC_STEPS;
    return [centre[0] + radius * Math.cos(angle), centre[1] + radius * Math.sin(angle)];
  });
  return [ends[0], ...line, ends[1], ...arc].map(pointOf);
}

/** Intersection of the ray from `towards` through `end` with a circle. */
function onCircle(end: Position, towards: Position, centre: Position, radius: number): Position {
  const length = Math.hypot(end[0] - towards[0], end[1] - towards[1]);
  const [dx, dy] = [(end[0] - towards[0]) / length, (end[1] - towards[1]) / length];
  const [px, py] = [end[0] - centre[0], end[1] - centre[1]];
  const along = px * dx + py * dy;
  const far = -along + Math.sqrt(Math.max(along * along - (px * px + py * py) + radius * radius, 0));
  return [end[0] + dx * far, end[1] + dy * far];
}

const minOf = (values: number[]): number => values.reduce((a, b) => Math.min(a, b), Infinity);

function combined(type: ClipType, subject: Paths64, clip: Paths64, rule = FillRule.NonZero): RoiGeometry | null {
  const tree = new PolyTree64();
  Clipper.booleanOpWithPolyTree(type, subject, clip, tree, rule);
  const polygons: Rings[] = [];
  collect(tree, polygons);
  return areaOfPolygons(polygons);
}

/** Collect outer rings with their holes; rings inside holes are polygons again. */
function collect(node: PolyPath64, into: Rings[]): void {
  for (let index = 0; index < node.count; index += 1) {
    const outer = node.child(index);
    const holes = Array.from({ length: outer.count }, (_, hole) => outer.child(hole));
    const rings = [outer, ...holes].map((each) => ringOf(each.poly ?? []));
    if (rings[0]) into.push(rings);
    for (const hole of holes) collect(hole, into);
  }
}

const pointOf = ([x, y]: Position): Path64[number] => ({ x: Math.round(x * UNITS_PER_PX), y: Math.round(y * UNITS_PER_PX) });

function ringOf(path: Path64): Position[] {
  const ring = path.map(({ x, y }): Position => [x / UNITS_PER_PX + 0, y / UNITS_PER_PX + 0]);
  return ring[0] ? [...ring, ring[0]] : ring;
}

/** Paths with outer rings and holes in opposite directions, as Clipper expects for many outlines. */
function pathsOf(geometry: RoiGeometry): Paths64 {
  return polygonsOf(geometry).flatMap((rings) =>
    rings.map((ring, index) => {
      const path = ring.slice(0, -1).map(pointOf);
      return Clipper.area(path) > 0 === (index === 0) ? path : path.reverse();
    }),
  );
}
