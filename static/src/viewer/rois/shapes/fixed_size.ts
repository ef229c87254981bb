/**
 * Regions of a nominal area: a circle, a square, or the fields of a grid, at the pixel size of the image. Two properties of
 * the region name its kind and its grid; the server reads the same texts (portal/annotations/fixed_sizes.py).
 */

import { inHundredths } from "../../lib/units";
import { randomUuid } from "../../lib/uuid";
import type { PolygonGeometry, Position, Properties, RoiGeometry } from "../../lib/types";
import { boundsOf, verticesOf } from "./outlines";
import type { Bounds } from "./outlines";

export const FIXED_SIZE_KEY = "Fixed size";
export const GRID_KEY = "Field grid";

/** Ten high-power fields of 0.55 mm: a circle with a radius of 0.8686 mm. */
export const CIRCLE_MM2 = 2.37;
export const SQUARE_MM2 = 1;
const CIRCLE_VERTICES = 96;
const UM2_PER_MM2 = 1e6;
/** Largest relative difference of measured and nominal area of a region of fixed size; as on the server. */
const MAX_AREA_ERROR = 0.005;
/** Vertices that moved less than this in relation to each other were only rounded. */
const MAX_DISTORTION_PX = 0.05;

/** Microns per pixel, across and down. */
export type Scale = [x: number, y: number];

export interface FixedSize {
  kind: "circle" | "square" | "field";
  areaMm2: number;
  /** Number of a field in its grid, from 1, and the number of fields; null for other kinds. */
  field: [at: number, count: number] | null;
  /** Id of the grid; empty outside of one. */
  grid: string;
}

export const areaMm2Text = (mm2: number): string => `${Number(mm2.toPrecision(6))} mm²`;

/** "circle 2.37 mm²", "field 3 of 10, 0.237 mm²". */
export function fixedSizeText({ kind, areaMm2, field }: FixedSize): string {
  return field ? `${kind} ${field[0]} of ${field[1]}, ${areaMm2Text(areaMm2)}` : `${kind} ${areaMm2Text(areaMm2)}`;
}

export function propertiesOfSize(size: FixedSize): Properties {
  return { [FIXED_SIZE_KEY]: fixedSizeText(size), ...(size.grid ? { [GRID_KEY]: size.grid } : {}) };
}

const TEXT = /^(circle|square|field) (?:(\d+) of (\d+), )?(\d+(?:\.\d+)?) mm²$/;

/** The size that the properties name; null if they name none, or if the area (µm²) is another one. */
export function fixedSizeOf(properties: Properties, areaUm2: number | null): FixedSize | null {
  const match = TEXT.exec(properties[FIXED_SIZE_KEY] ?? "");
  if (!match || areaUm2 === null) return null;
  const areaMm2 = Number(match[4]);
  if (Math.abs(areaUm2 / UM2_PER_MM2 - areaMm2) > MAX_AREA_ERROR * areaMm2) return null;
  const field: FixedSize["field"] = match[2] ? [Number(match[2]), Number(match[3])] : null;
  return { kind: match[1] as FixedSize["kind"], areaMm2, field, grid: properties[GRID_KEY] ?? "" };
}

/** "10 fields, 2.37 mm²"; null unless all are fields of one grid. */
export function gridText(sizes: (FixedSize | null)[]): string | null {
  const grid = sizes[0]?.grid;
  if (!grid || sizes.some((size) => size?.grid !== grid)) return null;
  const area = sizes.reduce((sum, size) => sum + (size?.areaMm2 ?? 0), 0);
  return `${sizes.length} ${sizes.length === 1 ? "field" : "fields"}, ${areaMm2Text(area)}`;
}

/** The properties of a region whose size was changed. */
export function ordinaryProperties(properties: Properties): Properties {
  return Object.fromEntries(Object.entries(properties).filter(([key]) => key !== FIXED_SIZE_KEY && key !== GRID_KEY));
}

/** Copies of fields are fields of grids of their own; `newId` names each of these grids. */
export function withNewGrids<R extends { properties?: Properties }>(rois: R[], newId: () => string): R[] {
  const ids = new Map<string, string>();
  return rois.map((roi) => {
    const grid = roi.properties?.[GRID_KEY];
    if (!grid) return roi;
    if (!ids.has(grid)) ids.set(grid, newId());
    return { ...roi, properties: { ...roi.properties, [GRID_KEY]: ids.get(grid) ?? "" } };
  });
}

export const newGridId = (): string => randomUuid().slice(0, 8);

/** True if one outline is the other, moved or turned. */
export function isCongruent(a: RoiGeometry, b: RoiGeometry): boolean {
  const [first, second] = [verticesOf(a), verticesOf(b)];
  if (a.type !== b.type || first.length !== second.length) return false;
  const [one, other] = [distances(first), distances(second)];
  return one.every((length, index) => Math.abs(length - (other[index] ?? 0)) <= MAX_DISTORTION_PX);
}

/** Distances of each vertex to the mean and to the next vertex. */
function distances(vertices: Position[]): number[] {
  const mean = [0, 1].map((axis) => vertices.reduce((sum, at) => sum + (at[axis] ?? 0), 0) / vertices.length) as Position;
  const between = (a: Position, b: Position): number => Math.hypot(a[0] - b[0], a[1] - b[1]);
  return vertices.flatMap((at, index) => [between(at, mean), between(at, vertices[(index + 1) % vertices.length] ?? at)]);
}

/** A polygon of exactly this area: its vertices are as far outside of the true circle as its edges are inside. */
export function circleAt([cx, cy]: Position, areaMm2: number, [mppX, mppY]: Scale): PolygonGeometry {
  const radiusUm = Math.sqrt((2 * areaMm2 * UM2_PER_MM2) / (CIRCLE_VERTICES * Math.sin((2 * Math.PI) / CIRCLE_VERTICES)));
  const ring = Array.from({ length: CIRCLE_VERTICES }, (_, step): Position => {
    const angle = (2 * Math.PI * step) / CIRCLE_VERTICES;
    return inHundredths([cx + (radiusUm * Math.cos(angle)) / mppX, cy + (radiusUm * Math.sin(angle)) / mppY]);
  });
  return { type: "Polygon", coordinates: [[...ring, ring[0] as Position]] };
}

export const sideUmOf = (areaMm2: number): number => Math.sqrt(areaMm2 * UM2_PER_MM2);
export const areaMm2Of = (sideUm: number): number => (sideUm * sideUm) / UM2_PER_MM2;

export function squareAt([cx, cy]: Position, areaMm2: number, [mppX, mppY]: Scale): PolygonGeometry {
  const half = sideUmOf(areaMm2) / 2;
  const [left, top, right, bottom] = [cx - half / mppX, cy - half / mppY, cx + half / mppX, cy + half / mppY];
  const ring: Position[] = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]];
  return { type: "Polygon", coordinates: [ring.map(inHundredths)] };
}

/** Whether bounds are within an image of this size. */
export function isInside([left, top, right, bottom]: Bounds, [width, height]: [number, number]): boolean {
  return left >= 0 && top >= 0 && right <= width && bottom <= height;
}

/** The centre nearest to a point at which a box of this size is within the image; null if the image is smaller. */
export function centreWithin([x, y]: Position, box: Position, image: [number, number]): Position | null {
  if (box[0] > image[0] || box[1] > image[1]) return null;
  const clamped = (value: number, axis: 0 | 1): number => Math.min(Math.max(value, box[axis] / 2), image[axis] - box[axis] / 2);
  return [clamped(x, 0), clamped(y, 1)];
}

/** Width and height of an outline. */
export function sizeOf(geometry: RoiGeometry): Position {
  const [left, top, right, bottom] = boundsOf([geometry]);
  return [right - left, bottom - top];
}

/** Fields of a grid: how many, how large, how far apart. */
export interface GridLayout {
  count: number;
  areaMm2: number;
  spacingUm: number;
}

/** Distance between the centres of neighbours, in level-0 pixels. */
function pitchOf({ areaMm2, spacingUm }: GridLayout, [mppX, mppY]: Scale): Position {
  const pitchUm = sideUmOf(areaMm2) + spacingUm;
  return [pitchUm / mppX, pitchUm / mppY];
}

/** Columns and rows of a grid that is as square as its number allows. */
export function gridShape(count: number): [columns: number, rows: number] {
  const columns = Math.ceil(Math.sqrt(count));
  return [columns, Math.ceil(count / columns)];
}

/** Centres of a grid of `count` fields around a point, row by row. */
export function gridCentres(at: Position, layout: GridLayout, scale: Scale): Position[] {
  const [columns, rows] = gridShape(layout.count);
  const [dx, dy] = pitchOf(layout, scale);
  return Array.from({ length: layout.count }, (_, index): Position => [
    at[0] + ((index % columns) - (columns - 1) / 2) * dx,
    at[1] + (Math.floor(index / columns) - (rows - 1) / 2) * dy,
  ]);
}

/** Rows and columns to each side of a point in which fields are looked for. */
const MAX_STEPS = 40;
const STEPS = Array.from({ length: 2 * MAX_STEPS + 1 }, (_, index) => index - MAX_STEPS);
/** Columns and rows from a point, the nearest first. */
const LATTICE = STEPS.flatMap((row) => STEPS.map((column): Position => [column, row])).sort((a, b) => Math.hypot(...a) - Math.hypot(...b));

/** The accepted centres nearest to a point, `count` at most, row by row. */
export function nearestCentres(at: Position, layout: GridLayout, scale: Scale, isAccepted: (centre: Position) => boolean): Position[] {
  const [dx, dy] = pitchOf(layout, scale);
  const steps: Position[] = [];
  for (const step of LATTICE) {
    if (steps.length === layout.count) break;
    if (isAccepted([at[0] + step[0] * dx, at[1] + step[1] * dy])) steps.push(step);
  }
  steps.sort((a, b) => a[1] - b[1] || a[0] - b[0]);
  return steps.map(([column, row]) => [at[0] + column * dx, at[1] + row * dy]);
}
