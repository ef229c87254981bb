/** ROIs, their revisions, labels and GeoJSON files over REST. */

import type { Schemas } from "../../../api/schemas";
import { API_ROOT, call, getAll, getJson, nextOf, postJson } from "../../lib/http";
import type { Page } from "../../lib/http";
import type { FrameRef, Label, Roi, RoiRevision } from "../../lib/types";

export type RoiFields = Pick<
  Roi,
  "geometry" | "label" | "name" | "description" | "properties" | "shape" | "track" | "locked"
>;
export type RoiDraft = RoiFields & Pick<Roi, "id" | "canvas" | "frame">;
export type RoiPatch = Partial<RoiFields>;

/** One of several changes of a request. */
export type RoiStep = RoiPatch & Pick<Schemas["RoiStepRequest"], "do" | "id" | "version"> & { frame?: FrameRef | null };

export interface RoiWindow {
  bounds: [number, number, number, number];
  /** Largest number of ROIs to return, the largest ROIs first. */
  limit: number;
}

/** The largest page the API gives. */
const ROI_PAGE_SIZE = 1000;

function roiWindowUrl(canvas: string, { bounds, limit }: RoiWindow): string {
  const params = new URLSearchParams({ canvas });
  const [left, top, right, bottom] = bounds;
  for (const [key, value] of Object.entries({ left, top, right, bottom })) {
    params.set(key, value.toFixed(2));
  }
  params.set("limit", String(limit));
  return `${API_ROOT}/rois/?${params}`;
}

export interface RoiPage {
  /** Number of all ROIs of the canvas; null after the first page. */
  count: number | null;
  rois: Roi[];
  /** URL of the next page; null on the last. */
  next: string | null;
}

/** One page of all ROIs of a canvas, oldest first: the first, or the one that `next` of a page names. */
export async function roiPage(canvas: string, next: string | null = null): Promise<RoiPage> {
  const params = new URLSearchParams({ canvas, page_size: String(ROI_PAGE_SIZE) });
  const answer = await getJson<Page<Roi>>(next ?? `${API_ROOT}/rois/?${params}`);
  return { count: answer.count ?? null, rois: answer.results, next: nextOf(answer) };
}

/** The largest ROIs of a window, in one answer, and how many the window holds. */
export async function roiWindow(
  canvas: string,
  window: RoiWindow,
  signal: AbortSignal,
): Promise<{ rois: Roi[]; count: number }> {
  const { results, count } = await getJson<Page<Roi>>(roiWindowUrl(canvas, window), signal);
  return { rois: results, count: count ?? results.length };
}

/** ROIs of a canvas by id, deleted ones included. */
export async function roisByIds(canvas: string, ids: string[], isDeleted: boolean): Promise<Roi[]> {
  const params = new URLSearchParams({ canvas, ids: ids.join(","), deleted: String(isDeleted), page_size: String(ids.length) });
  return (await getJson<Page<Roi>>(`${API_ROOT}/rois/?${params}`)).results;
}

export function roiGet(id: string): Promise<Roi> {
  return getJson<Roi>(`${API_ROOT}/rois/${id}/`);
}

export async function roiCreate(draft: RoiDraft, key: string): Promise<Roi> {
  return (await call(`${API_ROOT}/rois/`, { method: "POST", body: draft, key })).json() as Promise<Roi>;
}

export async function roiUpdate(id: string, version: number, patch: RoiPatch, key: string): Promise<Roi> {
  const options = { method: "PATCH", body: patch, ifMatch: version, key };
  return (await call(`${API_ROOT}/rois/${id}/`, options)).json() as Promise<Roi>;
}

/** The version after the deletion if the server states it, else null. */
export async function roiDelete(id: string, version: number, key: string): Promise<number | null> {
  const response = await call(`${API_ROOT}/rois/${id}/`, { method: "DELETE", ifMatch: version, key });
  const tag = Number((response.headers.get("ETag") ?? "").replace(/\D/g, ""));
  return tag > 0 ? tag : null;
}

/** Restore from the trash, with changes in the same version. */
export async function roiRestore(id: string, version: number, patch: RoiPatch, key: string): Promise<Roi> {
  const options = { method: "POST", body: patch, ifMatch: version, key };
  return (await call(`${API_ROOT}/rois/${id}/restore/`, options)).json() as Promise<Roi>;
}

/** Apply all changes or none; returns the changed ROIs in the same order. */
export async function roisChange(canvas: string, changes: RoiStep[], key: string): Promise<Roi[]> {
  const response = await call(`${API_ROOT}/rois/bulk/`, { method: "POST", body: { canvas, changes }, key });
  return ((await response.json()) as Schemas["RoisChanged"]).rois;
}

export function roiRevisions(id: string): Promise<RoiRevision[]> {
  return getAll<RoiRevision>(`${API_ROOT}/rois/${id}/revisions/?page_size=200`);
}

export function roisDeleted(canvas: string): Promise<Roi[]> {
  return getAll<Roi>(`${API_ROOT}/rois/?canvas=${canvas}&deleted=true&page_size=200`);
}

export function labelList(canvas: string): Promise<Label[]> {
  return getAll<Label>(`${API_ROOT}/labels/?canvas=${canvas}&page_size=200`);
}

/** Add a label to a lab; without a colour the server gives it one. */
export function labelCreate(label: { lab: string; name: string; color?: string }): Promise<Label> {
  return postJson<Label>(`${API_ROOT}/labels/`, label);
}
