import { describe, expect, it } from "vitest";

import { FIRST_CHOICE, isValid, parseChoice } from "@/viewer/rois/drawing/fixed_size_choice";
import type { FixedSizeChoice } from "@/viewer/rois/drawing/fixed_size_choice";
import { FixedSizePlanner } from "@/viewer/rois/drawing/fixed_size_planner";
import type { PlannerContext } from "@/viewer/rois/drawing/fixed_size_planner";
import { tissueShare } from "@/viewer/rois/drawing/tissue_map";
import { boundsOf } from "@/viewer/rois/shapes/outlines";
import type { RoiGeometry } from "@/viewer/lib/types";

const GRID: FixedSizeChoice = { ...FIRST_CHOICE, kind: "grid", count: 10, areaMm2: 0.01 };

function planner(choice: Partial<FixedSizeChoice>, given: Partial<PlannerContext> = {}): FixedSizePlanner {
  const context: PlannerContext = { canvas: { width: 4000, height: 4000 }, scale: [0.5, 0.5], region: () => null, tissueShare: () => null };
  return new FixedSizePlanner({ ...GRID, ...choice }, { ...context, ...given });
}

describe("planning", () => {
  it("places one circle inside the image", () => {
    const [only, ...others] = planner({ kind: "circle" }).plan([10, 10]);
    expect(others).toEqual([]);
    expect(boundsOf([only?.geometry as RoiGeometry])[0]).toBeCloseTo(0, 1);
  });

  it("refuses an image that is smaller than the circle", () => {
    const small = planner({ kind: "circle" }, { canvas: { width: 1000, height: 4000 } });
    expect([small.plan([10, 10]), small.shortfallText(0)]).toEqual([[], "The image is smaller than a circle of this size, so nothing was placed."]);
  });

  it("numbers the fields of one grid", () => {
    const fields = planner({}).plan([2000, 2000]);
    expect(fields.map(({ size }) => size.field)).toEqual(Array.from({ length: 10 }, (_, index) => [index + 1, 10]));
    expect(new Set(fields.map(({ size }) => size.grid)).size).toBe(1);
  });

  it("takes only fields that are wholly inside the selected region", () => {
    const region: RoiGeometry = { type: "Polygon", coordinates: [[[1000, 1000], [1620, 1000], [1620, 1420], [1000, 1420], [1000, 1000]]] };
    const inside = planner({}, { region: () => region });
    const fields = inside.plan([1310, 1110]);
    expect(fields).toHaveLength(6);
    expect(inside.shortfallText(6)).toBe("Only 6 of 10 fields have room inside the selected region.");
    for (const { geometry } of fields) {
      const [left, top, right, bottom] = boundsOf([geometry]);
      expect(left >= 1000 && top >= 1000 && right <= 1620 && bottom <= 1420).toBe(true);
    }
    expect(planner({ insideRegion: false }, { region: () => region }).plan([1310, 1110])).toHaveLength(10);
  });

  it("takes only fields with tissue", () => {
    const fields = planner({ onTissue: true, count: 4 }, { tissueShare: ([left]) => (left >= 2000 ? 0.6 : 0.4) }).plan([1990, 2000]);
    expect(fields).toHaveLength(4);
    expect(fields.every(({ geometry }) => boundsOf([geometry])[0] >= 2000)).toBe(true);
  });
});

it("shares of tissue are those of the pixels below a field", () => {
  const data = new Uint8ClampedArray([200, 100, 180, 255, 240, 240, 240, 255]); // tissue, glass
  const pixels = { data, width: 2, height: 1 };
  expect([[0, 0, 100, 100], [100, 0, 200, 100], [0, 0, 200, 100], [120, 10, 121, 11]].map((bounds) => tissueShare(pixels, bounds as [number, number, number, number], [200, 100]))).toEqual([1, 0, 0.5, 0]);
});

it("a choice that cannot be read is the first choice", () => {
  expect([parseChoice(null), parseChoice("nonsense"), parseChoice('{"count": 0}'), parseChoice("null")]).toEqual(Array(4).fill(FIRST_CHOICE));
  expect(parseChoice(JSON.stringify({ ...GRID, spacingUm: 50 }))).toEqual({ ...GRID, spacingUm: 50 });
  expect([isValid({ ...GRID, count: 2.5 }), isValid({ ...GRID, areaMm2: Number.NaN })]).toEqual([false, false]);
});
