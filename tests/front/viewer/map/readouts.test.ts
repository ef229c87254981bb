import { describe, expect, it } from "vitest";

import { cursorText, rotationText } from "@/viewer/map/readouts";
import { canvas } from "../canvases";

describe("cursorText", () => {
  const slide = canvas({ width: 2000, height: 1000, mpp_x: 0.5, mpp_y: 0.25 });

  it("names the pixel and where it is, each way at its own scale", () => {
    expect(cursorText([1200.9, 400.2], slide)).toBe("1,200, 400 px  (600 µm, 100 µm)");
  });

  it("names the pixel alone where the scale is unknown", () => {
    expect(cursorText([10, 20], { ...slide, mpp_y: null })).toBe("10, 20 px");
  });

  it("is empty off the image, whose last pixel is one less than its size", () => {
    expect(cursorText([1999.99, 999.99], slide)).not.toBe("");
    for (const at of [[-0.1, 5], [5, -0.1], [2000, 5], [5, 1000]] as [number, number][]) expect(cursorText(at, slide)).toBe("");
  });
});

describe("rotationText", () => {
  it.each([
    [0, ""],
    [0.004, ""],
    [-0.004, ""],
    [Math.PI / 2, "90°"],
    [-Math.PI / 4, "-45°"],
    [2 * Math.PI, ""],
    [2.5 * Math.PI, "90°"],
  ])("%d radians: %s", (radians, text) => {
    expect(rotationText(radians)).toBe(text);
  });
});
