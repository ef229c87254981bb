/** The bytes of a layer's picture: 0 where nothing was seen, 1 to 255 evenly from the minimum to the maximum. */

import { timeText } from "../lib/units";
import type { MosaicLayerData } from "./api";

type Scale = Pick<MosaicLayerData, "name" | "unit" | "minimum" | "maximum">;

/** Where a byte lies between the minimum (0) and the maximum (1). */
export function shareOf(byte: number): number {
  return (byte - 1) / 254;
}

/** What stands under the pointer. */
export function hereText(scale: Scale, byte: number): string {
  if (byte === 0) return "not seen";
  if (scale.name === "coverage") return "seen";
  return valueText(scale, scale.minimum + shareOf(byte) * (scale.maximum - scale.minimum));
}

export function valueText({ unit, maximum }: Pick<Scale, "unit" | "maximum">, value: number): string {
  if (unit === "s") return timeText(value);
  if (unit === "frames") return `${Math.round(value)} ${Math.round(value) === 1 ? "frame" : "frames"}`;
  return `${value.toFixed(maximum < 10 ? 2 : 1)}${unit ? ` ${unit}` : ""}`;
}
