/** Outlines moved, turned, scaled; and ellipses as polygons. All in level-0 pixels. */

import { inHundredths } from "../../lib/units";
import type { AreaGeometry, Position, RoiGeometry, RoiShape } from "../../lib/types";

export type Bounds = [left: number, top: number, right: number, bottom: number];

/** Vertices of an ellipse: enough for an error of less than a pixel at 2,000 px. */
const ELLIPSE_VERTICES = 96;

/** Move each vertex by `place`, rounded to hundredths of a pixel. */
export function mapVertices(geometry: RoiGeometry, place: (at: Position) => Position): RoiGeometry {
  return withVertices(geometry, (point) => inHundredths(place(point)));
}

/** The same geometry with each vertex replaced; its type and structure stay. */
export function withVertices<G extends RoiGeometry>(geometry: G, vertex: (at: Position) => Position): G {
  const deep = (value: Nested): Nested => (isPosition(value) ? vertex(value) : value.map(deep));
  return { type: geometry.type, coordinates: deep(geometry.coordinates) } as G;
}

type Nested = Position | Nested[];
const isPosition = (value: Nested): value is Position => typeof value[0] === "number";

/** All vertices of a geometry of any type. */
export function verticesOf(geometry: RoiGeometry): Position[] {
  const flat = (value: Nested): Position[] => (isPosition(value) ? [value] : value.flatMap(flat));
  return flat(geometry.coordinates);
}

export function isArea(geometry: RoiGeometry): geometry is AreaGeometry {
  return geometry.type === "Polygon" || geometry.type === "MultiPolygon";
}

/** Shape of a geometry by its type; ellipses are stored as polygons. */
export function shapeOf({ type }: RoiGeometry): RoiShape {
  if (type.endsWith("Point")) return "point";
  return type.endsWith("LineString") ? "line" : "polygon";
}

export function translated(geometry: RoiGeometry, [dx, dy]: Position): RoiGeometry {
  return mapVertices(geometry, ([x, y]) => [x + dx, y + dy]);
}

/** Rotate clockwise on the screen, where y points down. */
export function rotated(geometry: RoiGeometry, [cx, cy]: Position, radians: number): RoiGeometry {
  const [cos, sin] = [Math.cos(radians), Math.sin(radians)];
  return mapVertices(geometry, ([x, y]) => [cx + (x - cx) * cos - (y - cy) * sin, cy + (x - cx) * sin + (y - cy) * cos]);
}

export function boundsOf(geometries: RoiGeometry[]): Bounds {
  const bounds: Bounds = [Infinity, Infinity, -Infinity, -Infinity];
  for (const geometry of geometries) {
    for (const [x, y] of verticesOf(geometry)) {
      bounds[0] = Math.min(bounds[0], x);
      bounds[1] = Math.min(bounds[1], y);
      bounds[2] = Math.max(bounds[2], x);
      bounds[3] = Math.max(bounds[3], y);
    }
  }
  return bounds;
}

export function centreOf([left, top, right, bottom]: Bounds): Position {
  return [(left + right) / 2, (top + bottom) / 2];
}

/** The ellipse that fills these bounds; its vertices touch all four of them. */
export function ellipseIn([left, top, right, bottom]: Bounds): AreaGeometry {
  const [cx, cy] = [(left + right) / 2, (top + bottom) / 2];
  const [rx, ry] = [Math.abs(right - left) / 2, Math.abs(bottom - top) / 2];
  const ring = Array.from({ length: ELLIPSE_VERTICES }, (_, step): Position => {
    const angle = (2 * Math.PI * step) / ELLIPSE_VERTICES;
    return inHundredths([cx + rx * Math.cos(angle), cy + ry * Math.sin(angle)]);
  });
  return { type: "Polygon", coordinates: [[...ring, ring[0] as Position]] };
}
