/**
 * The address of images beside each other: `/canvases/<first>/beside/?with=<second>...`. Each `v`
 * (x, y, level-0 pixels per screen pixel, degrees), `roi` and `t` belongs to the image at its position;
 * `tied` says whether they move together, `asked` which query was taken from the first image.
 */

import { numberOf } from "../map/deep_link";
import type { LinkTarget } from "../map/deep_link";

/** Two by two: more would be too small to compare. */
export const MOST = 4;

export interface BesideLink {
  canvases: string[];
  views: LinkTarget[];
  /** Null where the address does not say. */
  isTied: boolean | null;
  /** The id of the query that was searched with, where that is not an ROI. */
  asked: string | null;
}

/** A view of which the address says nothing. */
export const NOWHERE: LinkTarget = { x: null, y: null, z: null, rot: 0, roi: null, t: null };

export function readBeside(first: string, search: string): BesideLink {
  const params = new URLSearchParams(search);
  const canvases = [first, ...params.getAll("with")].slice(0, MOST);
  const [views, rois, times] = ["v", "roi", "t"].map((name) => params.getAll(name));
  const tied = params.get("tied");
  return {
    canvases,
    views: canvases.map((_, at) => ({
      ...viewOf(views?.[at] ?? ""),
      roi: rois?.[at] || null,
      t: numberOf(times?.[at] ?? null),
    })),
    isTied: tied === null ? null : tied !== "0",
    asked: params.get("asked"),
  };
}

/** The address; parameters that would say nothing are left out. */
export function writeBeside({ canvases, views, isTied, asked }: BesideLink): string {
  const [first = "", ...others] = canvases;
  const params = new URLSearchParams(others.map((id) => ["with", id]));
  const each = canvases.map((_, at) => views[at] ?? NOWHERE);
  for (const [name, texts] of Object.entries({
    v: each.map(viewText),
    roi: each.map(({ roi }) => roi ?? ""),
    t: each.map(({ t }) => (t === null ? "" : String(t))),
  })) {
    if (texts.some(Boolean)) for (const text of texts) params.append(name, text);
  }
  if (isTied !== null) params.set("tied", isTied ? "1" : "0");
  if (asked) params.set("asked", asked);
  const query = params.toString();
  return `/canvases/${first}/beside/${query && `?${query}`}`;
}

function viewOf(text: string): LinkTarget {
  const [x = null, y = null, z = null, rot = 0] = text.split(",").map(numberOf);
  return { ...NOWHERE, x, y, z: z !== null && z > 0 ? z : null, rot: rot ?? 0 };
}

function viewText({ x, y, z, rot }: LinkTarget): string {
  if (x === null || y === null || z === null) return "";
  return [x.toFixed(1), y.toFixed(1), Number(z.toPrecision(6)), Number(rot.toFixed(2)) + 0].join(",");
}
