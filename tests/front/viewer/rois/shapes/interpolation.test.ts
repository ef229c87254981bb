import { describe, expect, it } from "vitest";

import { interpolatedOutline, matchedRings } from "@/viewer/rois/shapes/interpolation";
import { boundsOf, ellipseIn, translated, rotated } from "@/viewer/rois/shapes/outlines";
import type { Position, RoiGeometry } from "@/viewer/lib/types";

const polygon = (...ring: Position[]): RoiGeometry => ({ type: "Polygon", coordinates: [[...ring, ring[0] as Position]] });
const SQUARE = polygon([0, 0], [10, 0], [10, 10], [0, 10]);
const shaped = (geometry: RoiGeometry) => ({ geometry, shape: "polygon" as const });
const halfway = (a: RoiGeometry, b: RoiGeometry): RoiGeometry => interpolatedOutline(shaped(a), shaped(b), 0.5).geometry;

describe("between", () => {
  it("moves a rectangle by its corners", () => {
    const wider = polygon([20, 0], [40, 0], [40, 30], [20, 30]);
    expect(halfway(SQUARE, wider)).toEqual(polygon([10, 0], [25, 0], [25, 20], [10, 20]));
  });

  it("is the one or the other at its ends", () => {
    const there = shaped(translated(SQUARE, [5, 5]));
    expect(interpolatedOutline(shaped(SQUARE), there, 0).geometry).toBe(SQUARE);
    expect(interpolatedOutline(shaped(SQUARE), there, 1)).toBe(there);
  });

  it("finds the vertices that belong together where the ring starts elsewhere", () => {
    const rotatedStart = polygon([110, 10], [100, 10], [100, 0], [110, 0]); // the same square, from its third corner
    expect(halfway(SQUARE, rotatedStart)).toEqual(translated(SQUARE, [50, 0]));
  });

  it("takes a ring that turns the other way for the same square", () => {
    const other = polygon([100, 0], [100, 10], [110, 10], [110, 0]);
    expect(halfway(SQUARE, other)).toEqual(translated(SQUARE, [50, 0]));
    expect(halfway(other, SQUARE)).toEqual(translated(other, [-50, 0]));
  });

  it("goes by equal shares of the length where one has more vertices", () => {
    const finer = polygon([100, 0], [105, 0], [110, 0], [110, 10], [100, 10], [100, 5]);
    const middle = halfway(SQUARE, finer);
    expect(boundsOf([middle])).toEqual([50, 0, 60, 10]);
    const points = middle.coordinates[0] as Position[];
    expect(points.every(([x, y]) => x === 50 || x === 60 || y === 0 || y === 10)).toBe(true);
  });

  it("keeps an ellipse an ellipse", () => {
    const [a, b] = [ellipseIn([0, 0, 10, 20]), ellipseIn([10, 0, 40, 40])];
    const made = interpolatedOutline({ geometry: a, shape: "ellipse" }, { geometry: b, shape: "ellipse" }, 0.5);
    expect([made.shape, boundsOf([made.geometry])]).toEqual(["ellipse", [5, 0, 25, 30]]);
  });

  it("does not invent a way between other numbers of holes", () => {
    const hole: Position[] = [[2, 2], [4, 2], [4, 4], [2, 2]];
    const holed: RoiGeometry = { type: "Polygon", coordinates: [...(SQUARE.coordinates as Position[][]), hole] };
    expect(halfway(SQUARE, holed)).toBe(SQUARE);
  });

  it("lies close to a turn of ten degrees", () => {
    const ring = Array.from({ length: 40 }, (_, at): Position => {
      const angle = (at * 2 * Math.PI) / 40;
      const radius = 50 + 12 * Math.cos(3 * angle);
      return [100 + radius * Math.cos(angle), 100 + radius * Math.sin(angle)];
    });
    const from = polygon(...ring);
    const truth = rotated(from, [100, 100], (5 * Math.PI) / 180);
    const found = halfway(from, rotated(from, [100, 100], (10 * Math.PI) / 180));
    const off = (found.coordinates[0] as Position[]).map(([x, y], at) => {
      const [toX, toY] = (truth.coordinates[0] as Position[])[at] as Position;
      return Math.hypot(x - toX, y - toY);
    });
    expect(Math.max(...off)).toBeLessThan(0.5);
  });
});

describe("corresponding", () => {
  it("gives rings of one length, through all vertices of both", () => {
    const [a, b] = matchedRings([[0, 0], [10, 0], [10, 10], [0, 10]], [[0, 0], [10, 0], [5, 9]]);
    expect(a.length).toBe(b.length);
    for (const corner of [[0, 0], [10, 0], [10, 10], [0, 10]]) {
      expect(Math.min(...a.map(([x, y]) => Math.hypot(x - (corner[0] ?? 0), y - (corner[1] ?? 0))))).toBeLessThan(1e-6);
    }
  });
});
