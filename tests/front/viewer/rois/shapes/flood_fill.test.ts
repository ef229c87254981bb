import { describe, expect, it } from "vitest";

import { areaOf, areaPx, polygonsOf } from "@/viewer/rois/shapes/areas";
import { floodFilled, ringsOf, smoothed } from "@/viewer/rois/shapes/flood_fill";
import type { Mask, Pixels } from "@/viewer/rois/shapes/flood_fill";

/** A picture of letters: one shade for each. */
function picture(...rows: string[]): Pixels {
  const width = rows[0]?.length ?? 0;
  const legendEntries: Record<string, number> = { ".": 0, a: 100, b: 110, c: 200 };
  const data = new Uint8ClampedArray(rows.join("").split("").flatMap((letter) => Array<number>(4).fill(legendEntries[letter] ?? 0)));
  return { width, height: rows.length, data };
}

const text = (mask: Mask, width: number): string[] =>
  Array.from({ length: mask.length / width }, (_, y) => [...mask.slice(y * width, (y + 1) * width)].join(""));

function maskOf(...rows: string[]): Mask {
  return Uint8Array.from(rows.join("").split("").map(Number));
}

describe("growing", () => {
  const view = picture("aaaaaaccaa", "aaaaaaccaa", "aaaaaaccaa", "aaaaaacccc", "bbbbbbccaa");

  it("takes what is connected and alike, and stops at another colour", () => {
    expect(text(floodFilled(view, [2, 2], 18), 10)).toEqual(Array<string>(5).fill("1111110000"));
  });

  it("takes less with a smaller tolerance", () => {
    expect(text(floodFilled(view, [2, 1], 5), 10)[4]).toBe("0000000000");
  });

  it("takes everything with the largest one", () => {
    expect(floodFilled(view, [2, 2], 442).every((pixel) => pixel === 1)).toBe(true);
  });
});

describe("smoothing", () => {
  it("drops a whisker and fills a pinhole", () => {
    const rough = maskOf("000000000", "011111000", "011111000", "011011111", "011111000", "011111000", "000000000");
    const smooth = smoothed(rough, 9, 1);
    expect(smooth[3 * 9 + 3]).toBe(1);
    expect(smooth[3 * 9 + 7]).toBe(0);
  });
});

describe("outlines of a mask", () => {
  const sizeOf = (mask: Mask): number => mask.reduce((sum, pixel) => sum + pixel, 0);
  const areaOfMask = (mask: Mask, width: number): number => {
    const outline = areaOf(ringsOf(mask, width));
    return outline ? polygonsOf(outline).reduce((sum, rings) => sum + areaPx(rings), 0) : 0;
  };

  it("has a corner where the edge turns, and no other point", () => {
    expect(ringsOf(maskOf("0000", "0110", "0110", "0000"), 4)).toEqual([[[1, 1], [3, 1], [3, 3], [1, 3], [1, 1]]]);
  });

  it("has a ring for a hole", () => {
    const ring = maskOf("11111", "10001", "10101", "10001", "11111");
    expect(ringsOf(ring, 5)).toHaveLength(3);
    expect(areaOfMask(ring, 5)).toBe(sizeOf(ring));
  });

  it.each([1, 2, 3])("covers exactly the pixels of the mask, whatever its shape (%i)", (seed) => {
    let state = seed * 7919;
    const random = (): number => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
    const mask = Uint8Array.from({ length: 40 * 30 }, () => (random() > 0.45 ? 1 : 0));
    expect(areaOfMask(mask, 40)).toBe(sizeOf(mask));
  });
});
