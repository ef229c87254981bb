import { describe, expect, it } from "vitest";

import { colorAt, gradientOf, rampOf } from "@/viewer/mosaic/color_ramp";

describe("colorAt", () => {
  it("has the stops at even distances and mixes between them", () => {
    const ramp: [number, number, number][] = [[0, 0, 0], [100, 200, 0], [100, 200, 50]];
    expect(colorAt(ramp, 0)).toEqual([0, 0, 0]);
    expect(colorAt(ramp, 0.25)).toEqual([50, 100, 0]);
    expect(colorAt(ramp, 0.5)).toEqual([100, 200, 0]);
    expect(colorAt(ramp, 1)).toEqual([100, 200, 50]);
  });

  it("stays at the ends beyond them", () => {
    const ramp = rampOf("count");
    expect(colorAt(ramp, -1)).toEqual(colorAt(ramp, 0));
    expect(colorAt(ramp, 7)).toEqual(colorAt(ramp, 1));
  });
});

it("both times share a ramp, and an unknown layer has that of counts", () => {
  expect(rampOf("time_last")).toBe(rampOf("time"));
  expect(rampOf("new")).toBe(rampOf("count"));
});

it("grows lighter from the minimum to the maximum, so that the order can be seen", () => {
  for (const name of ["count", "time", "uncertainty"]) {
    const light = Array.from({ length: 21 }, (_, i) => {
      const [red, green, blue] = colorAt(rampOf(name), i / 20);
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    });
    expect(light).toEqual([...light].sort((a, b) => a - b));
  }
});

it("is written as CSS", () => {
  expect(gradientOf([[1, 2, 3], [4, 5, 6]])).toBe("linear-gradient(to right, rgb(1 2 3), rgb(4 5 6))");
});
