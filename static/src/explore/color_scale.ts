/** Colours of values: labels keep their own; the twelve most frequent other values get distinct colours. */
import type { Colouring } from "./map_points";

/** Readable on light and dark backgrounds; neighbouring hues differ clearly. */
const PALETTE = [
  "#2a7fb8", "#d1592a", "#3f9e4d", "#b04a98", "#b8901f", "#6a63c9",
  "#c2455a", "#24a08f", "#8a6a4f", "#7d9a1f", "#5b8fd6", "#a0522d",
]; // prettier-ignore
const OTHERS = "#8b979a";
export const NONE = "#b4bdbf";

export interface LegendEntry {
  readonly name: string;
  readonly color: string;
  readonly count: number;
  /** Indices of its values; -1 is "no value". */
  readonly values: readonly number[];
}

/** The rows of the legend, those without a value last. */
export function legendEntries(colouring: Colouring): LegendEntry[] {
  const isOwn = colouring.name === "label";
  const shown = isOwn ? colouring.values : colouring.values.slice(0, PALETTE.length);
  const rows: LegendEntry[] = shown.map((value, at) => ({
    name: value.name,
    color: (isOwn && value.color) || (PALETTE[at % PALETTE.length] ?? OTHERS),
    count: value.count,
    values: [at],
  }));
  const rest = colouring.values.slice(shown.length);
  if (rest.length) {
    const count = rest.reduce((sum, value) => sum + value.count, 0);
    const values = rest.map((_, at) => shown.length + at);
    rows.push({ name: `${rest.length} others`, color: OTHERS, count, values });
  }
  const without = colouring.at.filter((at) => at < 0).length;
  if (without) rows.push({ name: isOwn ? "No label" : "None", color: NONE, count: without, values: [-1] });
  return rows;
}

/** The colour of each point; null for those whose value is `hidden`. */
export function colorsOf(colouring: Colouring, rows: readonly LegendEntry[], hidden: ReadonlySet<number>): (string | null)[] {
  const colors = new Map(rows.flatMap((row) => row.values.map((value) => [value, row.color] as const)));
  return colouring.at.map((value) => (hidden.has(value) ? null : (colors.get(value) ?? NONE)));
}

/** Points of a legend entry. */
export function pointsOf(colouring: Colouring, shade: LegendEntry): number[] {
  const values = new Set(shade.values);
  return colouring.at.flatMap((value, at) => (values.has(value) ? [at] : []));
}
