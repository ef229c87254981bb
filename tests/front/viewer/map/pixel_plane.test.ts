import type MultiPolygon from "ol/geom/MultiPolygon";
import Circle from "ol/geom/Circle";
import Polygon from "ol/geom/Polygon";
import { describe, expect, it } from "vitest";

import type { RoiGeometry } from "@/viewer/lib/types";
import {
  boundsFromExtent,
  extentFromBounds,
  geometryFromL0,
  geometryToL0,
  l0FromMap,
  mapExtentOf,
  mapFromL0,
  projectionOf,
  sameGeometry,
} from "@/viewer/map/pixel_plane";
import { canvas } from "../canvases";

const TRIANGLE: RoiGeometry = { type: "Polygon", coordinates: [[[10, 20], [40, 20], [10, 60], [10, 20]]] };
const WITH_HOLE: RoiGeometry = {
  type: "MultiPolygon",
  coordinates: [
    [
      [[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]],
      [[3, 3], [6, 3], [6, 6], [3, 6], [3, 3]],
    ],
    [[[20, 20], [30, 20], [30, 30], [20, 20]]],
  ],
};

describe("points", () => {
  it("a canvas' y points down, the map's up", () => {
    expect(mapFromL0([3, 7])).toEqual([3, -7]);
    expect(l0FromMap([3, -7])).toEqual([3, 7]);
  });

  it("the canvas lies below the map's origin", () => {
    expect(mapExtentOf(canvas({ width: 800, height: 600 }))).toEqual([0, -600, 800, 0]);
  });
});

describe("bounds", () => {
  it("the top of a window is the map's upper edge", () => {
    expect(extentFromBounds([10, 20, 30, 50])).toEqual([10, -50, 30, -20]);
  });

  it("come back as they went", () => {
    expect(boundsFromExtent(extentFromBounds([1.5, 2.5, 3.5, 9]))).toEqual([1.5, 2.5, 3.5, 9]);
  });
});

describe("geometries", () => {
  it("a polygon keeps its area: half of 30 x 40", () => {
    expect((geometryFromL0(TRIANGLE) as Polygon).getArea()).toBe(600);
  });

  it("a hole takes away from the area: 81 - 9 + 50", () => {
    expect((geometryFromL0(WITH_HOLE) as MultiPolygon).getArea()).toBe(122);
  });

  it.each([TRIANGLE, WITH_HOLE])("$type comes back as it went", (geometry) => {
    expect(geometryToL0(geometryFromL0(geometry))).toEqual(geometry);
  });

  it("is rounded to two decimals", () => {
    const drawn = new Polygon([[[0.004, -0.006], [1.239, 0], [1, -2.345001], [0.004, -0.006]]]);
    expect(geometryToL0(drawn).coordinates).toEqual([[[0, 0.01], [1.24, 0], [1, 2.35], [0, 0.01]]]);
  });

  it.each<RoiGeometry>([
    { type: "Point", coordinates: [1.25, 2] },
    { type: "MultiPoint", coordinates: [[1, 2], [3, 4]] },
    { type: "LineString", coordinates: [[1, 2], [3, 4]] },
    { type: "MultiLineString", coordinates: [[[1, 2], [3, 4]], [[5, 6], [7, 8]]] },
  ])("points and lines come back as they were: $type", (mark) => {
    expect(geometryToL0(geometryFromL0(mark))).toEqual(mark);
  });

  it("a circle is no ROI", () => {
    expect(() => geometryToL0(new Circle([0, 0], 1))).toThrow("an ROI is an area, points or lines");
    expect(() => geometryToL0(undefined)).toThrow(TypeError);
  });

  it("are the same when their coordinates are", () => {
    expect(sameGeometry(TRIANGLE, structuredClone(TRIANGLE))).toBe(true);
    expect(sameGeometry(TRIANGLE, WITH_HOLE)).toBe(false);
  });
});

describe("the projection", () => {
  it("knows the size of a pixel in metres where the scale is known", () => {
    expect(projectionOf(canvas({ mpp_x: 0.25 })).getMetersPerUnit()).toBeCloseTo(0.25e-6, 15);
    expect(projectionOf(canvas({ mpp_x: null })).getMetersPerUnit()).toBeUndefined();
  });
});
