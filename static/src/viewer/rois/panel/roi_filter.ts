/** Filters and orders of the list of ROIs. */

import { UNLABELLED } from "../store/labels";
import type { Labels } from "../store/labels";
import type { RoiState } from "../store/roi_state";

/** Value of a choice that restricts nothing. */
export const ANY = "";

export interface RoiFilter {
  /** Id of a label, `UNLABELLED` or `ANY`. */
  label: string;
  text: string;
  /** Name of who drew it. */
  author: string;
  reviewState: string;
  /** Smallest and largest area in µm², or in px where the pixel size is unknown. */
  minArea: number | null;
  maxArea: number | null;
}

export const NO_FILTER: RoiFilter = { label: ANY, text: "", author: ANY, reviewState: ANY, minArea: null, maxArea: null };

/** Number of restrictions besides label and text, which are always in sight. */
export function restrictionCount({ author, reviewState, minArea, maxArea }: RoiFilter): number {
  return [author !== ANY, reviewState !== ANY, minArea !== null, maxArea !== null].filter(Boolean).length;
}

/** True if the list shows an ROI. One that is not saved yet has no author, state or area to be judged by: it is shown. */
export function passesFilter(state: RoiState, filter: RoiFilter, labels: Labels): boolean {
  if (labels.isHidden(state.label)) return false;
  if (filter.label !== ANY && (state.label ?? UNLABELLED) !== filter.label) return false;
  if (!matchesSearch(state, labels.nameOf(state.label), filter.text)) return false;
  const { server } = state;
  if (!server) return true;
  if (filter.author !== ANY && server.created_by !== filter.author) return false;
  if (filter.reviewState !== ANY && server.review_state !== filter.reviewState) return false;
  const area = areaOf(state);
  return area >= (filter.minArea ?? 0) && area <= (filter.maxArea ?? Infinity);
}

/** True if each word occurs in name, label, description or properties, ignoring case. */
export function matchesSearch(state: Pick<RoiState, "name" | "description" | "properties">, label: string, searchText: string): boolean {
  const words = searchText.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const text = [state.name, label, state.description, ...Object.entries(state.properties).flat()].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

function areaOf({ server }: RoiState): number {
  return server ? (server.area_um2 ?? server.area_px) : 0;
}

type Compare = (a: RoiState, b: RoiState) => number;

const REVIEW_ORDER = ["submitted", "draft", "rejected", "accepted"];
const reviewPlace = ({ server }: RoiState): number => REVIEW_ORDER.indexOf(server?.review_state ?? "draft");
const byText = (text: (state: RoiState) => string): Compare => (a, b) => {
  const [left, right] = [text(a), text(b)];
  if (!left !== !right) return left ? -1 : 1; // those without come last
  return left.localeCompare(right, "en", { numeric: true });
};

/** The orders of the list; without one, as they were drawn. */
const ORDERS: Record<string, (labels: Labels) => Compare> = {
  name: () => byText(({ name }) => name),
  label: (labels) => byText(({ label }) => (label ? labels.nameOf(label) : "")),
  author: () => byText(({ server }) => server?.created_by ?? ""),
  largest: () => (a, b) => areaOf(b) - areaOf(a),
  smallest: () => (a, b) => areaOf(a) - areaOf(b),
  review: () => (a, b) => reviewPlace(a) - reviewPlace(b),
};

/** The ROIs in an order of the list; equal ones, and all in an unknown order, as they came. */
export function sorted(states: RoiState[], order: string, labels: Labels): RoiState[] {
  if (order === "newest") return [...states].reverse();
  const compare = ORDERS[order]?.(labels);
  return compare ? [...states].sort(compare) : states;
}
