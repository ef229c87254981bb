import { describe, expect, it } from "vitest";

import { slideTarget } from "@/viewer/lib/slider";

describe("slideTarget", () => {
  it.each([
    ["ArrowLeft", 19],
    ["ArrowRight", 21],
    ["PageUp", 10],
    ["PageDown", 30],
    ["Home", 0],
    ["End", 99],
  ])("%s leads from 20 of 99 to %d", (key, target) => {
    expect(slideTarget(key, 20, 99)).toBe(target);
  });

  it("leaves other keys alone", () => {
    expect(slideTarget("a", 20, 99)).toBeNull();
    expect(slideTarget("Tab", 20, 99)).toBeNull();
  });
});
