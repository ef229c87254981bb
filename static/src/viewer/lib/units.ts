/** Display of lengths, areas, magnification and time; rounding of stored positions. */

import type { Position, Roi } from "./types";

/** The convention of digital pathology: 1 µm per pixel on screen is what a 10x objective shows. */
const UM_PER_PX_AT_1X = 10;

const significant = (value: number, digits = 3): string =>
  value.toLocaleString("en", { maximumSignificantDigits: digits, useGrouping: true });

export type AreaUnit = "mm²" | "µm²";

/** The unit of all areas of a list: mm² if each has at least 0.01 mm²; as on the server (portal/annotations/measures.py). */
export function areaUnit(areasUm2: (number | null | undefined)[]): AreaUnit {
  return areasUm2.every((area) => !area || area >= 1e4) ? "mm²" : "µm²";
}

export function areaText(areaPx: number, areaUm2: number | null, unit = areaUnit([areaUm2])): string {
  if (areaUm2 === null) return `${significant(areaPx)} px²`;
  return `${significant(unit === "mm²" ? areaUm2 / 1e6 : areaUm2)} ${unit}`;
}

/** Size of an ROI: area, length or number of points. */
export function sizeText(roi: Pick<Roi, "area_px" | "area_um2" | "length_px" | "length_um" | "points">, unit?: AreaUnit): string {
  if (typeof roi.points === "number") return roi.points === 1 ? "1 point" : `${roi.points} points`;
  if (typeof roi.length_um === "number") return lengthText(roi.length_um);
  if (typeof roi.length_px === "number") return `${significant(roi.length_px)} px`;
  return areaText(roi.area_px, roi.area_um2, unit);
}

export function lengthText(lengthUm: number): string {
  if (lengthUm >= 1e4) return `${significant(lengthUm / 1e4)} cm`;
  if (lengthUm >= 1e3) return `${significant(lengthUm / 1e3)} mm`;
  return `${significant(lengthUm)} µm`;
}

/** The read-out of the zoom. `resolution`: level-0 pixels per screen pixel. */
export function magnificationOf(resolution: number, mpp: number): number {
  return UM_PER_PX_AT_1X / (resolution * mpp);
}

/** Level-0 pixels per screen pixel at a magnification. */
export function resolutionAt(power: number, mpp: number): number {
  return UM_PER_PX_AT_1X / (power * mpp);
}

export function magnificationText(resolution: number, mpp: number | null): string {
  if (!mpp) return `${significant(100 / resolution)} %`;
  const umPerPx = resolution * mpp;
  const power = magnificationOf(resolution, mpp);
  return `${power.toFixed(power < 1 ? 2 : 1)}×, ${umPerPx.toFixed(2)} µm/px`;
}

/** `mm:ss.mmm`, rounded to the millisecond before it is cut up: never `00:60.000`. */
export function timeText(seconds: number): string {
  const ms = Math.round(seconds * 1000);
  const minutes = Math.floor(ms / 60_000);
  const rest = ((ms - minutes * 60_000) / 1000).toFixed(3).padStart(6, "0");
  return `${String(minutes).padStart(2, "0")}:${rest}`;
}

/** The largest of 1, 2, 5 x 10^n that is not above `limit`. */
export function roundStep(limit: number): number {
  const power = 10 ** Math.floor(Math.log10(limit));
  for (const factor of [5, 2]) {
    if (factor * power <= limit) return factor * power;
  }
  return power;
}

const hundredth = (value: number): number => Math.round(value * 100) / 100 + 0; // + 0: never minus zero

/** A place as it is stored: in whole hundredths of a level-0 pixel. */
export function inHundredths([x, y]: Position): Position {
  return [hundredth(x), hundredth(y)];
}
