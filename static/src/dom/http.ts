/** The REST API from the browser's session: CSRF, problem+json errors, ETag and If-Match. */

export const API_ROOT = "/api/v1";

/** A request that failed. `status` 0: no answer at all (offline, server down). */
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

  /** True if the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500 || this.code === "request-running";
  }

  /** True if someone else was first. */
  get isConflict(): boolean {
    return this.status === 412 || this.status === 409;
  }
}

export interface Page<T> {
  count?: number | null;
  next?: string | null;
  results: T[];
}

interface CallOptions {
  method?: string;
  body?: unknown;
  /** The version or tag that the change was made from. */
  ifMatch?: number | string;
  /** Idempotency key of a write that may be repeated. */
  key?: string;
  signal?: AbortSignal;
  /** ETag of the response already held; the server answers 304 if it is unchanged. */
  etag?: string;
  /** The request is not caused by the user, so it does not keep the session alive. */
  isUnattended?: boolean;
  /** Further headers. */
  headers?: Record<string, string>;
  /** Send the request even while the page is being left. */
  keepalive?: boolean;
}

let actingUser = "";

/** User this page was rendered for; the server refuses its writes after another user signed in. */
export function actFor(user: string): void {
  actingUser = user;
}

export function csrfToken(): string {
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
    // not JSON: the status must suffice
  }
  const text = (value: unknown, otherwise: string): string => (typeof value === "string" ? value : otherwise);
  const detail = text(body.detail, text(body.title, `The server answered ${response.status}.`));
  const wait = Number(response.headers.get("Retry-After"));
  const retryAfterS = Number.isFinite(wait) && wait > 0 ? wait : null;
  return new ApiError(response.status, text(body.code, "error"), detail, body, retryAfterS);
}

export async function call(url: string, options: CallOptions = {}): Promise<Response> {
  const method = options.method ?? "GET";
  const headers: Record<string, string> = { Accept: "application/json", ...options.headers };
  if (method !== "GET") headers["X-CSRFToken"] = csrfToken();
  if (method !== "GET" && actingUser) headers["X-Acting-User"] = actingUser;
  if (options.etag) headers["If-None-Match"] = options.etag;
  if (options.isUnattended) headers["X-Unattended"] = "1";
  if (options.key) headers["Idempotency-Key"] = options.key;
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
  if (!response.ok && response.status !== 304) throw await problemOf(response);
  return response;
}

export async function getJson<T>(url: string, signal?: AbortSignal): Promise<T> {
  const response = await call(url, signal ? { signal } : {});
  return (await response.json()) as T;
}

export async function postJson<T>(url: string, body: unknown): Promise<T> {
  return (await call(url, { method: "POST", body })).json() as Promise<T>;
}

/** All items of a list, whether the API answers with an array or with pages. */
export async function getAll<T>(url: string, signal?: AbortSignal): Promise<T[]> {
  const rows: T[] = [];
  let next: string | null = url;
  while (next) {
    const page: T[] | Page<T> = await getJson<T[] | Page<T>>(next, signal);
    if (Array.isArray(page)) return page;
    rows.push(...page.results);
    next = nextOf(page);
  }
  return rows;
}

/** Path of the next page on this host; null on the last page. */
export function nextOf({ next }: { next?: string | null }): string | null {
  if (!next) return null;
  const parsed = new URL(next, location.href);
  return parsed.pathname + parsed.search;
}

/** Send a file and report its progress. */
export function upload<T>(
  url: string,
  file: Blob,
  onProgress: (sent: number, total: number) => void,
  signal: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    xhr.open("POST", url);
    xhr.setRequestHeader("Accept", "application/json");
    xhr.setRequestHeader("Content-Type", "application/octet-stream");
    xhr.setRequestHeader("X-CSRFToken", csrfToken());
    if (actingUser) xhr.setRequestHeader("X-Acting-User", actingUser);
    xhr.upload.onprogress = ({ loaded, total }) => onProgress(loaded, total);
    xhr.onerror = () => reject(new ApiError(0, "offline", "The server does not answer."));
    xhr.onabort = () => reject(new DOMException("stopped", "AbortError"));
    xhr.onload = () => {
      const answer = new Response(xhr.responseText, { status: xhr.status });
      if (answer.ok) resolve(answer.json() as Promise<T>);
      else void problemOf(answer).then(reject);
    };
    signal.addEventListener("abort", () => xhr.abort());
    xhr.send(file);
  });
}
