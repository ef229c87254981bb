import { describe, expect, it } from "vitest";

import { areaPx } from "@/viewer/rois/shapes/areas";
import {
  CIRCLE_MM2, centreWithin, circleAt, fixedSizeOf, fixedSizeText, gridCentres, gridText, isCongruent, nearestCentres, ordinaryProperties,
  propertiesOfSize, sizeOf, squareAt, withNewGrids,
} from "@/viewer/rois/shapes/fixed_size";
import type { FixedSize, Scale } from "@/viewer/rois/shapes/fixed_size";
import { rotated, translated } from "@/viewer/rois/shapes/outlines";
import type { PolygonGeometry } from "@/viewer/lib/types";

const SCALES: Scale[] = [[0.25, 0.25], [0.5, 0.499], [8, 8]];
const areaMm2 = ({ coordinates }: PolygonGeometry, [x, y]: Scale): number => (areaPx(coordinates) * x * y) / 1e6;
const field = (at: number, grid = "a1b2c3d4"): FixedSize => ({ kind: "field", areaMm2: 0.237, field: [at, 10], grid });

describe("outlines", () => {
  it.each(SCALES)("have their nominal area at %f x %f µm per pixel", (...scale) => {
    for (const [outline, nominal] of [[circleAt([5000, 4000], CIRCLE_MM2, scale), CIRCLE_MM2], [squareAt([5000, 4000], 1, scale), 1]] as const) {
      expect(Math.abs(areaMm2(outline, scale) / nominal - 1)).toBeLessThan(0.0005);
    }
  });

  it("are a circle of 0.8686 mm and a square of 1 mm", () => {
    const [across] = sizeOf(circleAt([5000, 5000], CIRCLE_MM2, [0.5, 0.5]));
    expect((across * 0.5) / 2000).toBeCloseTo(0.8686, 2);
    expect(sizeOf(squareAt([5000, 5000], 1, [0.5, 0.25]))).toEqual([2000, 4000]);
  });

  it("stay congruent when moved or turned, and not when a vertex moves", () => {
    const circle = circleAt([500, 500], 0.1, [1, 1]);
    expect(isCongruent(circle, rotated(translated(circle, [17.3, -9.1]), [3, 4], 0.7))).toBe(true);
    const [ring = []] = circle.coordinates;
    const edited: PolygonGeometry = { ...circle, coordinates: [ring.map(([x, y], at) => (at === 5 ? [x + 3, y] : [x, y]))] };
    expect(isCongruent(circle, edited)).toBe(false);
    expect(isCongruent(circle, squareAt([500, 500], 0.1, [1, 1]))).toBe(false);
  });

  it("are moved into the image, or refused where it is smaller", () => {
    expect(centreWithin([0, 990], [100, 40], [1000, 1000])).toEqual([50, 980]);
    expect(centreWithin([0, 0], [1001, 40], [1000, 1000])).toBeNull();
  });
});

describe("grids", () => {
  const layout = { count: 10, areaMm2: 0.01, spacingUm: 20 };

  it("have rows and columns around the point, spaced between edges", () => {
    const centres = gridCentres([1000, 1000], layout, [0.5, 0.5]);
    expect(centres).toHaveLength(10);
    expect([centres[0], centres[1], centres[4]]).toEqual([[640, 760], [880, 760], [640, 1000]]); // 120 µm are 240 px
  });

  it("take the accepted fields nearest to the point, row by row", () => {
    const centres = nearestCentres([0, 0], { ...layout, count: 3 }, [1, 1], ([x]) => x >= 0);
    expect(centres).toHaveLength(3);
    expect(centres).toContainEqual([0, 0]);
    expect(centres.map(([, y]) => y)).toEqual(centres.map(([, y]) => y).sort((a, b) => a - b));
    expect(nearestCentres([0, 0], layout, [1, 1], () => false)).toEqual([]);
  });
});

describe("properties", () => {
  it("name kind, field and grid, and are read back", () => {
    const properties = propertiesOfSize(field(3));
    expect(properties).toEqual({ "Fixed size": "field 3 of 10, 0.237 mm²", "Field grid": "a1b2c3d4" });
    expect(fixedSizeOf(properties, 237_000)).toEqual(field(3));
    expect(ordinaryProperties({ ...properties, Grade: "2" })).toEqual({ Grade: "2" });
  });

  it("count for nothing once the area is another one", () => {
    const circle: FixedSize = { kind: "circle", areaMm2: CIRCLE_MM2, field: null, grid: "" };
    expect(fixedSizeText(circle)).toBe("circle 2.37 mm²");
    expect(fixedSizeOf(propertiesOfSize(circle), 2.37e6 * 1.004)).toEqual(circle);
    expect(fixedSizeOf(propertiesOfSize(circle), 2.37e6 * 1.006)).toBeNull();
    expect(fixedSizeOf({ "Fixed size": "large" }, 2.37e6)).toBeNull();
    expect(fixedSizeOf(propertiesOfSize(circle), null)).toBeNull();
  });

  it("sum fields of one grid only", () => {
    const fields = Array.from({ length: 10 }, (_, index) => field(index + 1));
    expect(gridText(fields)).toBe("10 fields, 2.37 mm²");
    expect(gridText([field(1), field(2, "other")])).toBeNull();
    expect(gridText([null])).toBeNull();
  });

  it("of copies name a grid of their own", () => {
    const [a, b, c] = withNewGrids([{ properties: propertiesOfSize(field(1)) }, { properties: propertiesOfSize(field(2)) }, { properties: {} }], () => "new");
    expect([a?.properties["Field grid"], b?.properties["Field grid"], c?.properties]).toEqual(["new", "new", {}]);
  });
});
