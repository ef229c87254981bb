import { describe, expect, it } from "vitest";

import type { Position, RoiGeometry } from "@/viewer/lib/types";
import { areaOf, areaPx, intersect, polygonsOf, simplified, split, subtract, strokeArea, unite, withoutHoles } from "@/viewer/rois/shapes/areas";

function box(left: number, top: number, right: number, bottom: number): RoiGeometry {
  return { type: "Polygon", coordinates: [[[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]] };
}

const area = (geometry: RoiGeometry | null): number =>
  geometry ? polygonsOf(geometry).reduce((sum, rings) => sum + areaPx(rings), 0) : 0;

const holed = subtract(box(0, 0, 100, 100), [box(40, 40, 60, 60)]) as RoiGeometry;

describe("set operations", () => {
  it("unites what overlaps into one ring", () => {
    const both = unite([box(0, 0, 10, 10), box(5, 5, 15, 15)]);
    expect(both?.type).toBe("Polygon");
    expect(area(both)).toBe(175);
  });

  it("unites what lies apart into several polygons", () => {
    const both = unite([box(0, 0, 10, 10), box(20, 0, 30, 10)]);
    expect(both?.type).toBe("MultiPolygon");
    expect(area(both)).toBe(200);
  });

  it("subtracts from the inside, which leaves a hole", () => {
    expect(polygonsOf(holed)[0]).toHaveLength(2);
    expect(area(holed)).toBe(10_000 - 400);
  });

  it("keeps holes when something is added beside them, and an island in one", () => {
    const island = unite([holed, box(45, 45, 55, 55), box(90, 0, 120, 100)]) as RoiGeometry;
    expect(area(island)).toBe(12_000 - 400 + 100);
    expect(polygonsOf(island).map((rings) => rings.length).sort()).toEqual([1, 2]);
  });

  it("leaves nothing where the whole is taken, or nothing is shared", () => {
    expect(subtract(box(0, 0, 10, 10), [box(-5, -5, 15, 15)])).toBeNull();
    expect(intersect(box(0, 0, 10, 10), [box(20, 20, 30, 30)])).toBeNull();
    expect(intersect(box(0, 0, 10, 10), [box(5, 0, 20, 10), box(0, 5, 20, 10)])).toMatchObject({ type: "Polygon" });
  });

  it("is exact in hundredths of a pixel, and closes every ring", () => {
    const cut = subtract(box(0.01, 0, 10.37, 10), [box(5.55, -1, 20, 11)]) as RoiGeometry;
    const [ring = []] = polygonsOf(cut)[0] ?? [];
    expect(ring.map(([x]) => x).sort((a, b) => a - b)).toEqual([0.01, 0.01, 5.55, 5.55, ...(ring[0]?.[0] === 5.55 ? [5.55] : [])]
      .concat(ring[0]?.[0] === 0.01 ? [0.01] : []).sort((a, b) => a - b));
    expect(ring[0]).toEqual(ring.at(-1));
  });

  it("makes valid areas of rings that cross themselves", () => {
    const bow: Position[] = [[0, 0], [10, 10], [10, 0], [0, 10]];
    expect(area(areaOf([bow]))).toBe(50);
  });
});

describe("splitting", () => {
  it("gives two pieces that together are the whole, though the line ends inside", () => {
    const pieces = split(holed, [[30, 50], [70, 50]]) ?? [];
    expect(pieces).toHaveLength(2);
    expect(pieces.map(area)).toEqual([4800, 4800]);
    expect(area(unite(pieces))).toBe(area(holed));
  });

  it("follows a bent line, and puts the largest piece first", () => {
    const line: Position[] = [[-5, 20], [50, 30], [105, 20]];
    const pieces = split(box(0, 0, 100, 100), line) ?? [];
    expect(pieces).toHaveLength(2);
    expect(area(pieces[0] as RoiGeometry)).toBeGreaterThan(area(pieces[1] as RoiGeometry));
    expect(pieces.reduce((sum, piece) => sum + area(piece), 0)).toBeCloseTo(10_000, 0);
  });

  it("cuts nothing beside the outline, and what is not crossed stays with the largest piece", () => {
    expect(split(box(0, 0, 10, 10), [[20, 0], [20, 10]])).toBeNull();
    expect(split(box(0, 0, 10, 10), [[5, 5]])).toBeNull();
    const two = unite([box(0, 0, 10, 10), box(100, 0, 110, 10)]) as RoiGeometry;
    const pieces = split(two, [[4, -5], [4, 15]]) ?? [];
    expect(pieces.map(area)).toEqual([160, 40]);
  });
});

describe("brush and clean-up", () => {
  it("covers a disc for a press and a capsule for a way", () => {
    expect(area(strokeArea([[50, 50]], 10))).toBeCloseTo(Math.PI * 100, -1);
    expect(area(strokeArea([[0, 0], [100, 0]], 10))).toBeCloseTo(2000 + Math.PI * 100, -1);
  });

  it("leaves out vertices that carry no shape", () => {
    const line: Position[] = Array.from({ length: 50 }, (_, x) => [x * 2, x % 2 ? 0.2 : 0]);
    const rough: RoiGeometry = { type: "Polygon", coordinates: [[...line, [98, 100], [0, 100], [0, 0]]] };
    const smooth = simplified(rough, 1);
    expect(polygonsOf(smooth)[0]?.[0]?.length).toBeLessThan(8);
    expect(area(smooth)).toBeCloseTo(area(rough), -2);
  });

  it("fills holes", () => {
    expect(area(withoutHoles(holed))).toBe(10_000);
  });
});
