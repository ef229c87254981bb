import { vi } from "vitest";

import type { RoiPatch, RoiStep } from "@/viewer/rois/store/api";
import type { Roi, RoiGeometry } from "@/viewer/lib/types";

/** A square of 10 px whose top left corner is at (`x`, `x`). */
export function square(x = 0): RoiGeometry {
  return { type: "Polygon", coordinates: [[[x, x], [x + 10, x], [x + 10, x + 10], [x, x + 10], [x, x]]] };
}

/** An ROI as the server tells it. */
export function roi(given: Partial<Roi> = {}): Roi {
  return {
    id: "r1",
    canvas: "c1",
    frame: null,
    geometry: square(),
    centroid: [5, 5],
    label: null,
    name: "",
    description: "",
    properties: {},
    shape: "polygon",
    track: [],
    locked: false,
    review_state: "draft",
    version: 1,
    area_px: 100,
    area_um2: null,
    length_px: null,
    length_um: null,
    points: null,
    bounds: [0, 0, 10, 10],
    created_by: "Ada",
    created_at: "2026-01-02T03:04:05Z",
    updated_at: "2026-01-02T03:04:05Z",
    deleted_at: null,
    is_embedded: true,
    notes: [],
    ...given,
  };
}

interface Asked {
  method: string;
  path: string;
  body: Partial<Roi>;
  /** The version that the request goes by, of If-Match. */
  version: number | null;
  /** Of Idempotency-Key. */
  key: string;
}

/** The ROIs' part of the REST API in memory: versions, If-Match, deleted and restored. */
export class FakeServer {
  readonly rois = new Map<string, Roi>();
  readonly asked: Asked[] = [];
  /** Given instead of the right answers, first to last; an Error stands for a broken line. */
  readonly instead: (Response | Error)[] = [];
  /** So many of the next answers are lost after the request was carried out. */
  lost = 0;
  private readonly done = new Set<string>();

  constructor(...rois: Roi[]) {
    for (const each of rois) this.rois.set(each.id, each);
    vi.stubGlobal("fetch", (url: string, init: RequestInit) => this.take(url, init));
    vi.stubGlobal("document", { cookie: "csrftoken=t", querySelector: () => null });
    vi.stubGlobal("location", new URL("https://portal.example/canvases/c1/"));
  }

  /** "POST, PATCH 1": the writes, each with the version it went by. */
  get writes(): string {
    const writes = this.asked.filter(({ method }) => method !== "GET");
    return writes.map(({ method, version }) => (version === null ? method : `${method} ${version}`)).join(", ");
  }

  /** Another user writes. */
  change(id: string, patch: RoiPatch & { deleted_at?: string | null }): Roi {
    const now = this.rois.get(id) as Roi;
    const next = { ...now, ...patch, version: now.version + 1 };
    this.rois.set(id, next);
    return next;
  }

  private take(url: string, init: RequestInit): Promise<Response> {
    const { pathname, searchParams } = new URL(url, "https://portal.example");
    const headers = init.headers as Record<string, string>;
    const version = /\d+/.exec(headers["If-Match"] ?? "")?.[0];
    const key = headers["Idempotency-Key"] ?? "";
    const body = typeof init.body === "string" ? (JSON.parse(init.body) as Partial<Roi>) : {};
    const asked = { method: init.method ?? "GET", path: pathname, body, version: version ? Number(version) : null, key };
    this.asked.push(asked);
    const instead = this.instead.shift();
    if (instead instanceof Error) return Promise.reject(instead);
    const answer = instead ?? this.answer(asked, searchParams);
    if (this.lost === 0 || asked.method === "GET") return Promise.resolve(answer);
    this.lost -= 1;
    return Promise.reject(new TypeError());
  }

  private answer({ method, path, body, version, key }: Asked, params: URLSearchParams): Response {
    const id = /rois\/([^/]+)\//.exec(path)?.[1];
    const wasDone = key !== "" && this.done.has(key);
    this.done.add(key);
    if (path.endsWith("/bulk/")) return this.together((body as { changes?: RoiStep[] }).changes ?? [], wasDone);
    if (!id) return method === "POST" ? this.create(body, wasDone) : this.list(params);
    const known = this.rois.get(id);
    if (!known) return Response.json({ code: "not_found" }, { status: 404 });
    if (method === "GET") return Response.json(known);
    if (wasDone && method === "DELETE") return gone(known);
    if (wasDone) return Response.json(known);
    if (version !== known.version) return Response.json({ code: "version", current: known }, { status: 412 });
    if (method === "PATCH") return Response.json(this.change(id, body));
    if (path.endsWith("/restore/")) return Response.json(this.change(id, { ...body, deleted_at: null }));
    return gone(this.change(id, { deleted_at: "2026-01-03T00:00:00Z" }));
  }

  private together(steps: RoiStep[], wasDone: boolean): Response {
    if (wasDone) return Response.json({ rois: steps.map(({ id }) => this.rois.get(id)) });
    const stale = steps.filter((step) => step.do !== "create" && this.rois.get(step.id)?.version !== step.version);
    if (stale.length) return Response.json({ code: "version" }, { status: 412 });
    const rois = steps.map(({ do: what, id, ...given }) => {
      if (what === "create") this.rois.set(id, roi({ ...given, id, version: 1 }));
      else if (what === "update") this.change(id, given);
      else this.change(id, { deleted_at: what === "delete" ? "2026-01-03T00:00:00Z" : null });
      return this.rois.get(id);
    });
    return Response.json({ rois });
  }

  private create(body: Partial<Roi>, wasDone: boolean): Response {
    const made = roi(body);
    const known = this.rois.get(made.id);
    if (known && wasDone) return Response.json(known);
    if (known) return Response.json({ code: "exists", current: known }, { status: 409 });
    this.rois.set(made.id, made);
    return Response.json(made, { status: 201 });
  }

  private list(params: URLSearchParams): Response {
    const live = [...this.rois.values()].filter((each) => each.deleted_at === null);
    const size = Number(params.get("page_size") ?? params.get("limit"));
    const from = Number(params.get("cursor") ?? 0);
    const isMore = from + size < live.length && !params.has("limit");
    const next = isMore ? `/api/v1/rois/?page_size=${size}&cursor=${from + size}` : null;
    const count = params.has("cursor") ? null : live.length;
    return Response.json({ count, results: live.slice(from, from + size), next });
  }
}

const gone = ({ version }: Roi): Response => new Response(null, { status: 204, headers: { ETag: `"${version}"` } });
