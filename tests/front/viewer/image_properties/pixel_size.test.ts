import { describe, expect, it } from "vitest";

import { mppOf } from "@/viewer/image_properties/pixel_size";

describe("mppOf", () => {
  it("is the length over the line", () => {
    expect(mppOf(200, 800)).toBe(0.25);
    expect(mppOf(100, 300)).toBe(0.33333);
  });

  it("is nothing where either is no length", () => {
    for (const [um, px] of [[0, 10], [-1, 10], [Number.NaN, 10], [5, 0]] as const) expect(mppOf(um, px)).toBeNull();
  });
});
