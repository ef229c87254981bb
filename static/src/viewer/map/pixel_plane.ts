/**
 * The pixel plane. OpenLayers' y points up, a canvas' y points down: a point (x, y) of level 0 is
 * (x, -y) on the map. Nothing outside this module flips a sign.
 */

import LineString from "ol/geom/LineString";
import MultiLineString from "ol/geom/MultiLineString";
import MultiPoint from "ol/geom/MultiPoint";
import MultiPolygon from "ol/geom/MultiPolygon";
import Point from "ol/geom/Point";
import Polygon from "ol/geom/Polygon";
import Projection from "ol/proj/Projection";
import type { Extent } from "ol/extent";
import type Geometry from "ol/geom/Geometry";

import { inHundredths } from "../lib/units";
import type { AreaGeometry, CanvasData, Position, RoiGeometry } from "../lib/types";

export function mapExtentOf(canvas: CanvasData): Extent {
  return [0, -canvas.height, canvas.width, 0];
}

export function projectionOf(canvas: CanvasData): Projection {
  const base = { code: "tessera-pixels", units: "pixels" as const, extent: mapExtentOf(canvas) };
  const metres = canvas.mpp_x ? { metersPerUnit: canvas.mpp_x * 1e-6 } : {};
  return new Projection({ ...base, ...metres, getPointResolution: (resolution) => resolution });
}

export function mapFromL0([x, y]: Position): Position {
  return [x, -y];
}

export function l0FromMap(coordinate: number[]): Position {
  return [coordinate[0] ?? 0, -(coordinate[1] ?? 0)];
}

/** `[left, top, right, bottom]` of level 0 as a map extent. */
export function extentFromBounds([left, top, right, bottom]: [number, number, number, number]): Extent {
  return [left, -bottom, right, -top];
}

export function boundsFromExtent(extent: Extent): [number, number, number, number] {
  const [left = 0, low = 0, right = 0, high = 0] = extent;
  return [left, -high, right, -low];
}

const flipRing = (ring: Position[]): Position[] => ring.map(mapFromL0);

export type AreaOnMap = Polygon | MultiPolygon;
export type GeometryOnMap = AreaOnMap | Point | MultiPoint | LineString | MultiLineString;

export function geometryFromL0(geometry: AreaGeometry): AreaOnMap;
export function geometryFromL0(geometry: RoiGeometry): GeometryOnMap;
export function geometryFromL0(geometry: RoiGeometry): GeometryOnMap {
  switch (geometry.type) {
    case "Polygon":
      return new Polygon(geometry.coordinates.map(flipRing));
    case "MultiPolygon":
      return new MultiPolygon(geometry.coordinates.map((rings) => rings.map(flipRing)));
    case "Point":
      return new Point(mapFromL0(geometry.coordinates));
    case "MultiPoint":
      return new MultiPoint(flipRing(geometry.coordinates));
    case "LineString":
      return new LineString(flipRing(geometry.coordinates));
    case "MultiLineString":
      return new MultiLineString(geometry.coordinates.map(flipRing));
  }
}

const pointToL0 = (point: number[]): Position => inHundredths(l0FromMap(point));
const ringToL0 = (ring: number[][]): Position[] => ring.map(pointToL0);

/** Level-0 GeoJSON of what was drawn, rounded to two decimals as QuPath writes it. */
export function geometryToL0(geometry: Geometry | undefined): RoiGeometry {
  if (geometry instanceof MultiPolygon) {
    const coordinates = geometry.getCoordinates().map((rings) => rings.map(ringToL0));
    return { type: "MultiPolygon", coordinates };
  }
  if (geometry instanceof Polygon) {
    return { type: "Polygon", coordinates: geometry.getCoordinates().map(ringToL0) };
  }
  if (geometry instanceof Point) return { type: "Point", coordinates: pointToL0(geometry.getCoordinates()) };
  if (geometry instanceof MultiPoint) return { type: "MultiPoint", coordinates: ringToL0(geometry.getCoordinates()) };
  if (geometry instanceof LineString) return { type: "LineString", coordinates: ringToL0(geometry.getCoordinates()) };
  if (geometry instanceof MultiLineString) {
    return { type: "MultiLineString", coordinates: geometry.getCoordinates().map(ringToL0) };
  }
  throw new TypeError("an ROI is an area, points or lines");
}

export function sameGeometry(a: RoiGeometry, b: RoiGeometry): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
