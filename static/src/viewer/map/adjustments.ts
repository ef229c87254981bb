/**
 * Display of the image: brightness, contrast, gamma, one channel or one stain. Only for display: what is
 * measured, searched and exported comes from the stored pixels.
 */

export type Shown = "all" | "red" | "green" | "blue" | Stain;
/** A stain, of the pair that it is unmixed from. */
export type Stain = "haematoxylin" | "eosin" | "dab-haematoxylin" | "dab";

export interface ImageAdjustments {
  shown: Shown;
  /** Brightness added, as a share of white: -0.5 to 0.5. */
  brightness: number;
  /** Factor around the middle grey: 0.25 to 4. */
  contrast: number;
  /** Above 1 lifts what is dark: 0.25 to 4. */
  gamma: number;
}

export const UNADJUSTED: ImageAdjustments = { shown: "all", brightness: 0, contrast: 1, gamma: 1 };

export function isUnadjusted(adjustments: ImageAdjustments): boolean {
  return (Object.keys(UNADJUSTED) as (keyof ImageAdjustments)[]).every((name) => adjustments[name] === UNADJUSTED[name]);
}

type Vector = [number, number, number];
type Matrix = [Vector, Vector, Vector];

/**
 * Optical densities of the stains in red, green and blue. Source: A. C. Ruifrok, D. A. Johnston, "Quantification
 * of histochemical staining by color deconvolution", Anal. Quant. Cytol. Histol. 23 (2001), table 1.
 */
const HAEMATOXYLIN: Vector = [0.65, 0.7, 0.29];
const EOSIN: Vector = [0.07, 0.99, 0.11];
const DAB: Vector = [0.27, 0.57, 0.78];
const UNMIXED: Record<Stain, { from: [Vector, Vector]; at: 0 | 1 }> = {
  haematoxylin: { from: [HAEMATOXYLIN, EOSIN], at: 0 },
  eosin: { from: [HAEMATOXYLIN, EOSIN], at: 1 },
  "dab-haematoxylin": { from: [HAEMATOXYLIN, DAB], at: 0 },
  dab: { from: [HAEMATOXYLIN, DAB], at: 1 },
};

/** The darkest density that eight bits tell from black: log10 of 255. */
const DARKEST = Math.log10(255);
const STEPS = 256;

const table = (value: (share: number) => number): number[] =>
  Array.from({ length: STEPS }, (_, at) => Math.min(Math.max(value(at / (STEPS - 1)), 0), 1));

/** Light to optical density, both 0 to 1; and back. */
export const TO_DENSITY = table((light) => -Math.log10(Math.max(light, 1 / 255)) / DARKEST);
export const TO_LIGHT = table((density) => 10 ** (-density * DARKEST));

/** Table of the displayed value for each value of a channel. */
export function tone({ brightness, contrast, gamma }: ImageAdjustments): number[] {
  return table((value) => (value ** (1 / gamma) - 0.5) * contrast + 0.5 + brightness);
}

export function isStain(shown: Shown): shown is Stain {
  return shown in UNMIXED;
}

const CHANNELS: Shown[] = ["red", "green", "blue"];

/** Matrix that shows one channel as grey; its rows give red, green and blue. */
export function channelMatrix(shown: Shown): Matrix {
  const row = CHANNELS.map((name) => (name === shown ? 1 : 0)) as Vector;
  return [row, row, row];
}

/** Matrix from optical densities to those of one stain of a pair; a third component is perpendicular to both. */
export function stainMatrix(stain: Stain): Matrix {
  const { from, at } = UNMIXED[stain];
  const [a, b] = from.map(unit) as [Vector, Vector];
  const third = unit(cross(a, b));
  const rows = inverse([a, b, third]);
  const chosen = [a, b][at] as Vector;
  const amount = [0, 1, 2].map((channel) => rows[channel]?.[at] ?? 0) as Vector;
  return chosen.map((part) => amount.map((share) => part * share)) as Matrix;
}

function unit([x, y, z]: Vector): Vector {
  const length = Math.hypot(x, y, z);
  return [x / length, y / length, z / length];
}

function cross([ax, ay, az]: Vector, [bx, by, bz]: Vector): Vector {
  return [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx];
}

/** Invert a 3 x 3 matrix by its adjugate. */
function inverse([a, b, c]: Matrix): Matrix {
  const columns: Matrix = [cross(b, c), cross(c, a), cross(a, b)];
  const determinant = a[0] * columns[0][0] + a[1] * columns[0][1] + a[2] * columns[0][2];
  return [0, 1, 2].map((row) => columns.map((column) => (column[row] ?? 0) / determinant)) as Matrix;
}
