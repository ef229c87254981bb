/** Byte encoding of a layer: 0 is unseen, 1 to 255 map linearly from minimum to maximum. */

import { timeText } from "../lib/units";
import type { MosaicLayerData } from "./api";

type Scale = Pick<MosaicLayerData, "name" | "unit" | "minimum" | "maximum">;

/** A position within a pixel is as good as known: what stays below is not stretched over the colours. */
const MIN_UNCERTAINTY_PX = 1;

/** The values at both ends of the colours. */
export function colorRange({ name, minimum, maximum }: Scale): [number, number] {
  return name === "uncertainty" ? [0, Math.max(maximum, MIN_UNCERTAINTY_PX)] : [minimum, maximum];
}

/** Position of a byte's value in the colour range, 0 to 1. */
export function colorShare(scale: Scale, byte: number): number {
  const [low, high] = colorRange(scale);
  return high > low ? (valueOf(scale, byte) - low) / (high - low) : 0;
}

function valueOf({ minimum, maximum }: Scale, byte: number): number {
  return minimum + shareOf(byte) * (maximum - minimum);
}

/** Position of a byte between minimum (0) and maximum (1). */
export function shareOf(byte: number): number {
  return (byte - 1) / 254;
}

/** Text for the value under the pointer. */
export function valueAtPointerText(scale: Scale, byte: number): string {
  if (byte === 0) return "not seen";
  if (scale.name === "coverage") return "seen";
  return valueText(scale, valueOf(scale, byte));
}

export function valueText({ unit, maximum }: Pick<Scale, "unit" | "maximum">, value: number): string {
  if (unit === "s") return timeText(value);
  if (unit === "frames") return `${Math.round(value)} ${Math.round(value) === 1 ? "frame" : "frames"}`;
  return `${value.toFixed(maximum < 10 ? 2 : 1)}${unit ? ` ${unit}` : ""}`;
}
