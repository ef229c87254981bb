/** The bytes of a layer's picture: 0 where nothing was seen, 1 to 255 evenly from the minimum to the maximum. */

import { timeText } from "../lib/units";
import type { MosaicLayerData } from "./api";

type Scale = Pick<MosaicLayerData, "name" | "unit" | "minimum" | "maximum">;

/** A position within a pixel is as good as known: what stays below is not stretched over the colours. */
const LEAST_UNCERTAINTY_PX = 1;

/** The values at both ends of the colours. */
export function colorRange({ name, minimum, maximum }: Scale): [number, number] {
  return name === "uncertainty" ? [0, Math.max(maximum, LEAST_UNCERTAINTY_PX)] : [minimum, maximum];
}

/** Where the value of a byte lies between both ends of the colours, 0 to 1. */
export function colorShare(scale: Scale, byte: number): number {
  const [low, high] = colorRange(scale);
  return high > low ? (valueOf(scale, byte) - low) / (high - low) : 0;
}

function valueOf({ minimum, maximum }: Scale, byte: number): number {
  return minimum + shareOf(byte) * (maximum - minimum);
}

/** Where a byte lies between the minimum (0) and the maximum (1). */
export function shareOf(byte: number): number {
  return (byte - 1) / 254;
}

/** What stands under the pointer. */
export function hereText(scale: Scale, byte: number): string {
  if (byte === 0) return "not seen";
  if (scale.name === "coverage") return "seen";
  return valueText(scale, valueOf(scale, byte));
}

export function valueText({ unit, maximum }: Pick<Scale, "unit" | "maximum">, value: number): string {
  if (unit === "s") return timeText(value);
  if (unit === "frames") return `${Math.round(value)} ${Math.round(value) === 1 ? "frame" : "frames"}`;
  return `${value.toFixed(maximum < 10 ? 2 : 1)}${unit ? ` ${unit}` : ""}`;
}
