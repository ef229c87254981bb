import { describe, expect, it } from "vitest";

import { colorRange, colorShare, valueAtPointerText, shareOf, valueText } from "@/viewer/mosaic/layer_values";

describe("bytes", () => {
  it("1 is the minimum, 255 the maximum, 128 the middle", () => {
    expect([1, 128, 255].map(shareOf)).toEqual([0, 0.5, 1]);
  });
});

describe("hereText", () => {
  const count = { name: "count", unit: "frames", minimum: 1, maximum: 21 };

  it("tells the value that the byte stands for", () => {
    expect([1, 128, 255].map((byte) => valueAtPointerText(count, byte))).toEqual(["1 frame", "11 frames", "21 frames"]);
  });

  it("tells what was not seen at all", () => {
    expect(valueAtPointerText(count, 0)).toBe("not seen");
    expect(valueAtPointerText({ ...count, name: "coverage" }, 255)).toBe("seen");
  });
});

describe("valueText", () => {
  it.each([
    ["s", 90, 61.5, "01:01.500"],
    ["frames", 9, 1.4, "1 frame"],
    ["px", 3, 0.126, "0.13 px"],
    ["px", 30, 12.34, "12.3 px"],
    ["", 3, 1, "1.00"],
  ])("in %s up to %d: %d", (unit, maximum, value, text) => {
    expect(valueText({ unit, maximum }, value)).toBe(text);
  });
});

describe("colours", () => {
  const sure = { name: "uncertainty", unit: "px", minimum: 0.02, maximum: 0.09 };

  it("do not make a hundredth of a pixel look like a fault", () => {
    expect(colorRange(sure)).toEqual([0, 1]);
    expect(colorShare(sure, 255)).toBeCloseTo(0.09);
  });

  it("reach as far as an uncertainty does", () => {
    expect(colorRange({ ...sure, maximum: 7 })).toEqual([0, 7]);
    expect(colorShare({ ...sure, maximum: 7 }, 255)).toBe(1);
  });

  it("of what is counted run from the least to the most", () => {
    const count = { name: "count", unit: "frames", minimum: 1, maximum: 21 };
    expect([1, 128, 255].map((byte) => colorShare(count, byte))).toEqual([0, 0.5, 1]);
    expect(colorShare({ ...count, maximum: 1 }, 9)).toBe(0);
  });
});
