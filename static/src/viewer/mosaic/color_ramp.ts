/** Colours of numbers: perceptually even ramps, given by a few stops. */

export type Rgb = [number, number, number];

/** Colour ramps: a few stops of viridis, plasma and inferno of matplotlib (CC0). */
const RAMPS: Record<string, Rgb[]> = {
  count: [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]],
  time: [[13, 8, 135], [126, 3, 168], [204, 71, 120], [248, 149, 64], [240, 249, 33]],
  uncertainty: [[20, 11, 53], [87, 16, 110], [188, 55, 84], [249, 142, 9], [252, 255, 164]],
  coverage: [[38, 166, 154], [38, 166, 154]],
};

export function rampOf(layer: string): Rgb[] {
  return RAMPS[layer.startsWith("time") ? "time" : layer] ?? RAMPS.count ?? [];
}

/** The colour at `share` (0 to 1) of the ramp. */
export function colorAt(ramp: Rgb[], share: number): Rgb {
  const position = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const low = ramp[Math.floor(position)] ?? [0, 0, 0];
  const high = ramp[Math.ceil(position)] ?? low;
  const rest = position - Math.floor(position);
  return [0, 1, 2].map((i) => Math.round((low[i] ?? 0) * (1 - rest) + (high[i] ?? 0) * rest)) as Rgb;
}

export function gradientOf(ramp: Rgb[]): string {
  return `linear-gradient(to right, ${ramp.map((rgb) => `rgb(${rgb.join(" ")})`).join(", ")})`;
}
