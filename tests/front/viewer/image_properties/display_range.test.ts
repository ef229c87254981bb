import { describe, expect, it } from "vitest";

import { rangeOf } from "@/viewer/image_properties/display_range";

describe("the display range of a dialog", () => {
  it("is of two different numbers, in either order", () => {
    expect(rangeOf(0, 4095)).toEqual({ low: 0, high: 4095 });
    expect(rangeOf(4095, 0)).toEqual({ low: 4095, high: 0 });
  });

  it("is none where a number is missing or both are the same", () => {
    expect(rangeOf(Number.NaN, 5)).toBeNull();
    expect(rangeOf(5, 5)).toBeNull();
  });
});
