/** REST client of the events of a video. */

import type { Schemas } from "../../../api/schemas";
import { API_ROOT, call, getAll, getJson } from "../../lib/http";
import type { FrameRef } from "../../lib/types";

export type VideoEvent = Schemas["VideoEvent"];
export type VideoEventRevision = Schemas["VideoEventRevision"];

/** Editable fields; a moment ends on the frame on which it begins. */
export interface VideoEventFields {
  name: string;
  note: string;
  first: FrameRef;
  last: FrameRef;
}

const ROOT = `${API_ROOT}/video-events/`;

type Body = Partial<{ id: string; canvas: string; name: string; note: string; first_index: number; last_index: number }>;

function bodyOf({ first, last, ...texts }: Partial<VideoEventFields>): Body {
  return { ...texts, ...(first && { first_index: first.index }), ...(last && { last_index: last.index }) };
}

async function write(url: string, method: string, key: string, body: Body, version?: number): Promise<VideoEvent> {
  const options = { method, key, body, ...(version !== undefined && { ifMatch: version }) };
  return (await call(url, options)).json() as Promise<VideoEvent>;
}

/** Live events of a canvas, by their first frame. */
export const videoEvents = (canvas: string): Promise<VideoEvent[]> => getAll(`${ROOT}?canvas=${canvas}&page_size=200`);

export const videoEventsDeleted = (canvas: string): Promise<VideoEvent[]> => getAll(`${ROOT}?canvas=${canvas}&deleted=true&page_size=200`);

export const videoEventGet = (id: string): Promise<VideoEvent> => getJson(`${ROOT}${id}/`);

export const videoEventCreate = (id: string, canvas: string, fields: VideoEventFields, key: string): Promise<VideoEvent> =>
  write(ROOT, "POST", key, { id, canvas, ...bodyOf(fields) });

export const videoEventUpdate = (id: string, version: number, patch: Partial<VideoEventFields>, key: string): Promise<VideoEvent> =>
  write(`${ROOT}${id}/`, "PATCH", key, bodyOf(patch), version);

export const videoEventRestore = (id: string, version: number, key: string): Promise<VideoEvent> =>
  write(`${ROOT}${id}/restore/`, "POST", key, {}, version);

export async function videoEventDelete(id: string, version: number, key: string): Promise<number | null> {
  const response = await call(`${ROOT}${id}/`, { method: "DELETE", ifMatch: version, key });
  const tag = Number((response.headers.get("ETag") ?? "").replace(/\D/g, ""));
  return tag > 0 ? tag : null;
}

export const videoEventRevisions = (id: string): Promise<VideoEventRevision[]> => getAll(`${ROOT}${id}/revisions/?page_size=200`);

/** Names to suggest, those that the lab uses most first. */
export async function videoEventNames(canvas: string): Promise<string[]> {
  return (await getJson<Schemas["VideoEventNames"]>(`${ROOT}names/?canvas=${canvas}`)).names;
}
