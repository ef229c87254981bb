import { vi } from "vitest";

import type { VideoEvent } from "@/viewer/video/events/api";
import type { FrameRef } from "@/viewer/lib/types";

/** A frame of a video of 25 frames a second. */
export const frame = (index: number): FrameRef => ({ index, pts: index * 40, time_s: index / 25 });

/** An event as the server tells it. */
export function videoEvent(given: Partial<VideoEvent> = {}): VideoEvent {
  return {
    ...{ id: "e1", canvas: "c1", name: "Caecum", note: "", first: frame(10), last: frame(10), version: 1 },
    ...{ created_by: "Ada", created_at: "2026-01-02T03:04:05Z", updated_at: "2026-01-02T03:04:05Z", deleted_at: null },
    ...given,
  };
}

interface Body {
  id?: string;
  name?: string;
  note?: string;
  first_index?: number;
  last_index?: number;
}

/** The events' part of the REST API in memory. */
export class FakeEventServer {
  readonly events = new Map<string, VideoEvent>();
  /** "POST, PATCH 1": the writes, each with the version it went by. */
  readonly writes: string[] = [];
  /** False: no request is answered. */
  isUp = true;

  constructor(...events: VideoEvent[]) {
    for (const each of events) this.events.set(each.id, each);
    vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
      if (!this.isUp) return Promise.reject(new TypeError());
      return Promise.resolve(this.answer(new URL(url, "https://portal.example").pathname, init));
    });
    vi.stubGlobal("document", { cookie: "csrftoken=t", querySelector: () => null });
    vi.stubGlobal("location", new URL("https://portal.example/canvases/c1/"));
  }

  /** Another user writes. */
  change(id: string, { first_index, last_index, ...given }: Body & { deleted_at?: string | null }): VideoEvent {
    const now = this.events.get(id) as VideoEvent;
    const frames = { ...(first_index !== undefined && { first: frame(first_index) }), ...(last_index !== undefined && { last: frame(last_index) }) };
    const next = { ...now, ...given, ...frames, version: now.version + 1 };
    this.events.set(id, next);
    return next;
  }

  private answer(path: string, { method = "GET", headers, body: text }: RequestInit): Response {
    const id = /video-events\/([^/]+)\//.exec(path)?.[1];
    const version = /\d+/.exec((headers as Record<string, string>)["If-Match"] ?? "")?.[0];
    const body = typeof text === "string" ? (JSON.parse(text) as Body) : {};
    if (method !== "GET") this.writes.push(version ? `${method} ${version}` : method);
    if (!id && method === "POST") {
      const made = videoEvent({ id: body.id ?? "", name: body.name ?? "", note: body.note ?? "", first: frame(body.first_index ?? 0), last: frame(body.last_index ?? 0) });
      this.events.set(made.id, made);
      return Response.json(made, { status: 201 });
    }
    const known = this.events.get(id ?? "");
    if (!id) return Response.json({ results: [...this.events.values()].filter(({ deleted_at }) => deleted_at === null), next: null });
    if (!known) return Response.json({ code: "not_found" }, { status: 404 });
    if (method === "GET") return Response.json(known);
    if (Number(version) !== known.version) return Response.json({ code: "version", current: known }, { status: 412 });
    if (method === "PATCH") return Response.json(this.change(id, body));
    if (path.endsWith("/restore/")) return Response.json(this.change(id, { deleted_at: null }));
    const gone = this.change(id, { deleted_at: "2026-01-03T00:00:00Z" });
    return new Response(null, { status: 204, headers: { ETag: `"${gone.version}"` } });
  }
}
