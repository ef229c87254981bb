/** The REST API from the browser's session: CSRF, problem+json errors, ETag and If-Match. */

import type { CanvasData, FrameRef, Label, Roi, RoiGeometry, RoiRevision } from "./types";

const ROOT = "/api/v1";

/** An answer that is no success. `status` 0: no answer at all (offline, server down). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Record<string, unknown> = {},
    readonly retryAfterS: number | null = null,
  ) {
    super(message);
  }

  /** True where the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  /** True where someone else was first. */
  get isConflict(): boolean {
    return this.status === 412 || this.status === 409;
  }
}

export interface RoiDraft {
  id: string;
  canvas: string;
  geometry: RoiGeometry;
  label: string | null;
  name: string;
  frame: FrameRef | null;
}
export type RoiPatch = Partial<Pick<RoiDraft, "geometry" | "label" | "name">>;

interface Page<T> {
  count?: number;
  next?: string | null;
  results: T[];
}

interface CallOptions {
  method?: string;
  body?: unknown;
  ifMatch?: number;
  signal?: AbortSignal;
  keepalive?: boolean;
}

function csrfToken(): string {
  const cookie = /(?:^|;\s*)csrftoken=([^;]+)/.exec(document.cookie);
  if (cookie?.[1]) return decodeURIComponent(cookie[1]);
  const field = document.querySelector<HTMLInputElement>("[name=csrfmiddlewaretoken]");
  return field?.value ?? "";
}

async function problemOf(response: Response): Promise<ApiError> {
  let body: Record<string, unknown> = {};
  try {
    body = (await response.json()) as Record<string, unknown>;
  } catch {
    // not JSON: the status has to do
  }
  const text = (value: unknown, otherwise: string): string => (typeof value === "string" ? value : otherwise);
  const detail = text(body.detail, text(body.title, `The server answered ${response.status}.`));
  const wait = Number(response.headers.get("Retry-After"));
  const retryAfterS = Number.isFinite(wait) && wait > 0 ? wait : null;
  return new ApiError(response.status, text(body.code, "error"), detail, body, retryAfterS);
}

async function call(url: string, options: CallOptions = {}): Promise<Response> {
  const method = options.method ?? "GET";
  const headers: Record<string, string> = { Accept: "application/json" };
  if (method !== "GET") headers["X-CSRFToken"] = csrfToken();
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (options.ifMatch !== undefined) headers["If-Match"] = `"${options.ifMatch}"`;
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      headers,
      credentials: "same-origin",
      body: options.body === undefined ? null : JSON.stringify(options.body),
      signal: options.signal ?? null,
      keepalive: options.keepalive ?? false,
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "offline", "The server does not answer.");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

export async function getJson<T>(url: string, signal?: AbortSignal): Promise<T> {
  const response = await call(url, signal ? { signal } : {});
  return (await response.json()) as T;
}

export async function postJson<T>(url: string, body: unknown): Promise<T> {
  return (await call(url, { method: "POST", body })).json() as Promise<T>;
}

/** Every page of a list, whether the API answers an array or pages. */
export async function getAll<T>(url: string, signal?: AbortSignal): Promise<T[]> {
  const found: T[] = [];
  let next: string | null = url;
  while (next) {
    const page: T[] | Page<T> = await getJson<T[] | Page<T>>(next, signal);
    if (Array.isArray(page)) return page;
    found.push(...page.results);
    next = page.next ? sameOrigin(page.next) : null;
  }
  return found;
}

function sameOrigin(url: string): string {
  const parsed = new URL(url, location.href);
  return parsed.pathname + parsed.search;
}

export interface RoiWindow {
  bounds: [number, number, number, number];
  minSizePx: number;
  /** At most so many, the largest first. */
  limit: number;
}

const ROI_PAGE_SIZE = 1000;

function roiWindowUrl(canvas: string, { bounds, minSizePx, limit }: RoiWindow): string {
  const params = new URLSearchParams({ canvas });
  const [left, top, right, bottom] = bounds;
  for (const [key, value] of Object.entries({ left, top, right, bottom })) {
    params.set(key, value.toFixed(2));
  }
  params.set("min_size_px", minSizePx.toFixed(2));
  params.set("limit", String(limit));
  return `${ROOT}/rois/?${params}`;
}

/** One page of all ROIs of a canvas, oldest first. */
export async function roiPage(canvas: string, page: number): Promise<{ count: number; rois: Roi[]; isLast: boolean }> {
  const params = new URLSearchParams({ canvas, page: String(page), page_size: String(ROI_PAGE_SIZE) });
  const answer = await getJson<Page<Roi>>(`${ROOT}/rois/?${params}`);
  return { count: answer.count ?? 0, rois: answer.results, isLast: !answer.next };
}

/** The largest ROIs of a window, in one answer. */
export async function roiWindow(canvas: string, window: RoiWindow, signal: AbortSignal): Promise<Roi[]> {
  return (await getJson<Page<Roi>>(roiWindowUrl(canvas, window), signal)).results;
}

export function roiGet(id: string): Promise<Roi> {
  return getJson<Roi>(`${ROOT}/rois/${id}/`);
}

export async function roiCreate(draft: RoiDraft): Promise<Roi> {
  return (await call(`${ROOT}/rois/`, { method: "POST", body: draft })).json() as Promise<Roi>;
}

export async function roiUpdate(id: string, version: number, patch: RoiPatch): Promise<Roi> {
  const options = { method: "PATCH", body: patch, ifMatch: version };
  return (await call(`${ROOT}/rois/${id}/`, options)).json() as Promise<Roi>;
}

/** The new version where the server says it, else null. */
export async function roiDelete(id: string, version: number): Promise<number | null> {
  const response = await call(`${ROOT}/rois/${id}/`, { method: "DELETE", ifMatch: version });
  const tag = Number((response.headers.get("ETag") ?? "").replace(/\D/g, ""));
  return tag > 0 ? tag : null;
}

export async function roiRestore(id: string, version: number): Promise<Roi> {
  const options = { method: "POST", body: {}, ifMatch: version };
  return (await call(`${ROOT}/rois/${id}/restore/`, options)).json() as Promise<Roi>;
}

export function roiRevisions(id: string): Promise<RoiRevision[]> {
  return getAll<RoiRevision>(`${ROOT}/rois/${id}/revisions/?page_size=200`);
}

export function labelList(canvas: string): Promise<Label[]> {
  return getAll<Label>(`${ROOT}/labels/?canvas=${canvas}&page_size=200`);
}

export function canvasGet(id: string): Promise<CanvasData> {
  return getJson<CanvasData>(`${ROOT}/canvases/${id}/`);
}

export function geojsonUrl(canvas: string): string {
  return `${ROOT}/canvases/${canvas}/rois.geojson`;
}

export interface ImportReport {
  created: number;
  updated: number;
  restored: number;
  unchanged: number;
  refused: number;
  repaired: number;
  items: { index: number; status: string; reason: string }[];
}

export async function geojsonImport(canvas: string, body: unknown): Promise<ImportReport> {
  const response = await call(geojsonUrl(canvas), { method: "POST", body });
  return (await response.json()) as ImportReport;
}
