/**
 * URL of the compare page: `/canvases/<first>/compare/?with=<second>...`. The n-th `v` (x, y, level-0 pixels per screen
 * pixel, degrees), `roi` and `t` belong to the n-th image; `sync` (0 or 1) tells whether the views are synchronised,
 * `query` names a search query drawn on the first image.
 */

import { numberOf } from "../map/deep_link";
import type { LinkTarget } from "../map/deep_link";

/** Two by two; more would be too small to compare. */
export const MAX_IMAGES = 4;

export interface CompareLink {
  canvases: string[];
  views: LinkTarget[];
  /** Null if the URL does not tell. */
  isSynced: boolean | null;
  /** The id of the search query, if it is not an ROI. */
  query: string | null;
}

export const EMPTY_VIEW: LinkTarget = { x: null, y: null, z: null, rot: 0, roi: null, t: null };

export function readCompareLink(first: string, search: string): CompareLink {
  const params = new URLSearchParams(search);
  const canvases = [first, ...params.getAll("with")].slice(0, MAX_IMAGES);
  const [views, rois, times] = ["v", "roi", "t"].map((name) => params.getAll(name));
  const sync = params.get("sync");
  return {
    canvases,
    views: canvases.map((_, at) => ({
      ...viewOf(views?.[at] ?? ""),
      roi: rois?.[at] || null,
      t: numberOf(times?.[at] ?? null),
    })),
    isSynced: sync === null ? null : sync !== "0",
    query: params.get("query"),
  };
}

/** The URL, without parameters of no effect. */
export function writeCompareLink({ canvases, views, isSynced, query }: CompareLink): string {
  const [first = "", ...others] = canvases;
  const params = new URLSearchParams(others.map((id) => ["with", id]));
  const each = canvases.map((_, at) => views[at] ?? EMPTY_VIEW);
  for (const [name, texts] of Object.entries({
    v: each.map(viewText),
    roi: each.map(({ roi }) => roi ?? ""),
    t: each.map(({ t }) => (t === null ? "" : String(t))),
  })) {
    if (texts.some(Boolean)) for (const text of texts) params.append(name, text);
  }
  if (isSynced !== null) params.set("sync", isSynced ? "1" : "0");
  if (query) params.set("query", query);
  const search = params.toString();
  return `/canvases/${first}/compare/${search && `?${search}`}`;
}

function viewOf(text: string): LinkTarget {
  const [x = null, y = null, z = null, rot = 0] = text.split(",").map(numberOf);
  return { ...EMPTY_VIEW, x, y, z: z !== null && z > 0 ? z : null, rot: rot ?? 0 };
}

function viewText({ x, y, z, rot }: LinkTarget): string {
  if (x === null || y === null || z === null) return "";
  return [x.toFixed(1), y.toFixed(1), Number(z.toPrecision(6)), Number(rot.toFixed(2)) + 0].join(",");
}
