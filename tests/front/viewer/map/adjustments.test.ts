import { describe, expect, it } from "vitest";

import { UNADJUSTED, TO_DENSITY, TO_LIGHT, channelMatrix, isUnadjusted, stainMatrix, tone } from "@/viewer/map/adjustments";
import type { Stain } from "@/viewer/map/adjustments";

const applied = (matrix: number[][], of: number[]): number[] =>
  matrix.map((row) => row.reduce((sum, value, at) => sum + value * (of[at] ?? 0), 0));
const at = (values: number[], share: number): number => values[Math.round(share * 255)] ?? NaN;

describe("the tone", () => {
  it("changes nothing where nothing is asked for", () => {
    expect(isUnadjusted({ ...UNADJUSTED })).toBe(true);
    for (const value of [0, 0.2, 0.6, 1]) expect(at(tone(UNADJUSTED), value)).toBeCloseTo(value, 2);
  });

  it("adds, spreads around the middle and lifts the dark", () => {
    expect(at(tone({ ...UNADJUSTED, brightness: 0.2 }), 0.4)).toBeCloseTo(0.6, 2);
    expect(at(tone({ ...UNADJUSTED, contrast: 2 }), 0.6)).toBeCloseTo(0.7, 2);
    expect(at(tone({ ...UNADJUSTED, gamma: 2 }), 0.25)).toBeCloseTo(0.5, 2);
    expect(at(tone({ ...UNADJUSTED, contrast: 4 }), 0)).toBe(0); // never beyond black and white
    expect(at(tone({ ...UNADJUSTED, contrast: 4 }), 1)).toBe(1);
  });
});

it("shows one channel as grey", () => {
  expect(applied(channelMatrix("green"), [0.1, 0.5, 0.9])).toEqual([0.5, 0.5, 0.5]);
});

describe("stains", () => {
  const H = [0.65, 0.7, 0.29];
  const E = [0.07, 0.99, 0.11];
  const DAB = [0.27, 0.57, 0.78];
  const pairs: [Stain, number[], number[]][] = [
    ["haematoxylin", H, E],
    ["eosin", E, H],
    ["dab-haematoxylin", H, DAB],
    ["dab", DAB, H],
  ];

  it.each(pairs)("%s leaves itself as it is and takes the other away", (stain, own, other) => {
    const mixed = own.map((value, channel) => 0.4 * value + 0.7 * (other[channel] ?? 0));
    const left = applied(stainMatrix(stain), mixed);
    own.forEach((value, channel) => expect(left[channel]).toBeCloseTo(0.4 * value, 9));
  });

  it("light to density and back is light again", () => {
    for (const light of [0.01, 0.1, 0.5, 1]) expect(at(TO_LIGHT, at(TO_DENSITY, light))).toBeCloseTo(light, 1);
    expect([TO_DENSITY[255], TO_DENSITY[0]]).toEqual([0, 1]);
  });
});
