import { expect, it } from "vitest";

import { presetAt, nextPreset } from "@/viewer/map/magnifications";
import { magnificationOf, resolutionAt } from "@/viewer/lib/units";

it("a magnification next to a preset is that preset, any other is none", () => {
  expect([40, 39.6, 10.1, 2.5].map(presetAt)).toEqual([40, 40, 10, 2.5]);
  expect([36, 7, 0.2].map(presetAt)).toEqual([null, null, null]);
});

it("goes from a magnification to a resolution and back", () => {
  expect(resolutionAt(40, 0.25)).toBe(1);
  expect(magnificationOf(resolutionAt(2.5, 0.5), 0.5)).toBeCloseTo(2.5, 12);
});

it("steps to the next preset and back, from one and from between two", () => {
  expect([0.4, 1, 10.1, 36, 40].map((now) => nextPreset(now, 1))).toEqual([1, 2.5, 20, 40, null]);
  expect([0.4, 1, 2.5, 10.1, 36].map((now) => nextPreset(now, -1))).toEqual([null, null, 1, 5, 20]);
});
