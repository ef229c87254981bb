/** The magnifications that are one click or one key away. */

/** Magnifications of common objectives and scanners. */
export const MAGNIFICATIONS = [1, 2.5, 5, 10, 20, 40];
/** A magnification this near to a preset, as a share of it, is that preset. */
const SAME = 0.02;

/** The preset that a magnification is, if it is one. */
export function presetAt(magnification: number): number | null {
  return MAGNIFICATIONS.find((power) => Math.abs(magnification - power) < SAME * power) ?? null;
}

/** The next preset above a magnification (`by` 1) or below it (-1), if there is one. */
export function nextPreset(magnification: number, by: 1 | -1): number | null {
  if (by > 0) return MAGNIFICATIONS.find((power) => power > magnification * (1 + SAME)) ?? null;
  return MAGNIFICATIONS.filter((power) => power < magnification * (1 - SAME)).at(-1) ?? null;
}
