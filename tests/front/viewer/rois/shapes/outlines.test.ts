import { describe, expect, it } from "vitest";

import { boundsOf, centreOf, ellipseIn, translated, rotated } from "@/viewer/rois/shapes/outlines";
import { stretched } from "@/viewer/rois/tools/handles";
import { measureText } from "@/viewer/rois/tools/measuring";
import { square } from "../fake_server";

describe("outlines", () => {
  it("move and turn in hundredths of a pixel", () => {
    expect(boundsOf([translated(square(), [0.333, -5])])).toEqual([0.33, -5, 10.33, 5]);
    const [first] = rotated(square(), [0, 0], Math.PI / 2).coordinates as [number, number][][];
    expect(first?.[1]).toEqual([0, 10]); // from (10, 0): to the right on the screen is down
  });

  it("turned all around are where they were", () => {
    expect(rotated(square(3), centreOf(boundsOf([square(3)])), 2 * Math.PI)).toEqual(square(3));
  });

  it("of an ellipse fill the bounds exactly", () => {
    expect(boundsOf([ellipseIn([10.25, 20, 110.75, 60.5])])).toEqual([10.25, 20, 110.75, 60.5]);
  });

  it("are stretched by a handle, even across to the other side", () => {
    expect(stretched([0, 0, 100, 50], "se", [120, 80])).toEqual([0, 0, 120, 80]);
    expect(stretched([0, 0, 100, 50], "n", [999, 10])).toEqual([0, 10, 100, 50]);
    expect(stretched([0, 0, 100, 50], "w", [150, 0])).toEqual([100, 0, 150, 50]);
  });
});

describe("measures", () => {
  it("are lengths in microns where the scale is known", () => {
    expect(measureText([[0, 0], [300, 400]], [0.5, 0.5])).toBe("250 µm");
    expect(measureText([[0, 0], [3, 4]], null)).toBe("5 px");
    expect(measureText([[0, 0]], null)).toBe("");
  });

  it("are angles at the middle point, at most 180 degrees", () => {
    expect(measureText([[10, 0], [0, 0], [0, 10]], null)).toBe("90.0°");
    expect(measureText([[-10, -1], [0, 0], [-10, 1]], null)).toBe("11.4°");
  });
});
