/**
 * Changes and presence of other users on the canvas, polled every POLL_MS while the page is visible. Their changes are
 * applied by version; unsaved changes are never overwritten.
 */

import type { Schemas } from "../../../api/schemas";
import { ApiError, API_ROOT, call } from "../../lib/http";
import { Emitter } from "../../lib/events";
import { randomUuid } from "../../lib/uuid";
import type { Bounds } from "../shapes/outlines";
import { roisByIds } from "./api";
import type { RoiStore } from "./roi_store";

/** Small ROIs come with the answer: others' edits are here about a second after they were saved. */
export const POLL_MS = 1000;
/** Interval of presence reports; the server waits for two of them. */
export const HEARTBEAT_MS = 10_000;
/** A moving view is reported at most this often. */
const VIEW_REPORT_MS = 2000;
/** Pause after an error, to relieve the server. */
const ERROR_PAUSE_MS = 8000;
/** Largest number of ids per request. */
const IDS_PER_REQUEST = 100;

export type Person = Schemas["Person"];

/** Presence reported to other users. */
export interface Presence {
  view: Bounds | null;
  roi: string | null;
}

interface LiveEvents {
  people: Person[];
}

export class LiveUpdates extends Emitter<LiveEvents> {
  people: Person[] = [];
  private readonly tab = randomUuid();
  private readonly url: string;
  private cursor: string | null = null;
  private etag = "";
  private timer: ReturnType<typeof setTimeout> | null = null;
  private lastPresence = "";
  private lastPresenceAt = 0;
  private isStopped = false;
  private isObserver = false;
  /** Changes with every write of an event of the video. */
  private eventsVersion = 0;

  constructor(
    private readonly canvas: string,
    private readonly store: RoiStore,
    private readonly presence: () => Presence,
    private readonly loadEvents: () => Promise<void> = () => Promise.resolve(),
  ) {
    super();
    this.url = `${API_ROOT}/canvases/${canvas}/live/`;
  }

  start(leaving: AbortSignal): void {
    if (leaving.aborted) return;
    const options = { signal: leaving };
    document.addEventListener("visibilitychange", () => (document.hidden ? this.leave() : this.poll()), options);
    addEventListener("pagehide", () => this.leave(), options);
    leaving.addEventListener("abort", () => {
      this.isStopped = true;
      this.leave();
    });
    this.poll();
  }

  private readonly poll = (): void => {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    if (document.hidden || this.isStopped) return;
    void this.update().then((pause) => {
      if (this.timer) clearTimeout(this.timer);
      this.timer = this.isStopped ? null : setTimeout(this.poll, pause);
    });
  };

  /** Poll once and, when due, report presence; returns the pause before the next poll. */
  async update(): Promise<number> {
    try {
      await this.sendPresence();
      await this.fetchChanges();
      return POLL_MS;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.isStopped ||= [401, 403, 404].includes(error.status);
      return ERROR_PAUSE_MS;
    }
  }

  private async sendPresence(): Promise<void> {
    if (this.isObserver) return;
    const body = { tab: this.tab, ...this.presence() };
    const text = JSON.stringify(body);
    const age = Date.now() - this.lastPresenceAt;
    if (age < (text === this.lastPresence ? HEARTBEAT_MS : VIEW_REPORT_MS)) return;
    this.lastPresence = text;
    this.lastPresenceAt = Date.now();
    try {
      await call(this.url, { method: "PUT", body, isUnattended: true });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      this.isObserver = true; // reads without being shown to others
    }
  }

  private async fetchChanges(): Promise<void> {
    const query = new URLSearchParams({ tab: this.tab, ...(this.cursor && { since: this.cursor }) });
    const response = await call(`${this.url}?${query}`, { isUnattended: true, etag: this.etag });
    if (response.status === 304) return;
    const now = (await response.json()) as Schemas["CanvasNow"];
    await this.applyChanges(now);
    this.etag = response.headers.get("ETag") ?? "";
    this.cursor = now.cursor;
  }

  private async applyChanges({ changed, has_more, people, video_events }: Schemas["CanvasNow"]): Promise<void> {
    this.people = people;
    this.emit("people", people);
    if (video_events !== this.eventsVersion) {
      await this.loadEvents();
      this.eventsVersion = video_events;
    }
    if (has_more) return this.store.load();
    const news = changed.filter(({ id, version, is_deleted }) => {
      const known = this.store.states.get(id);
      return known ? (known.server?.version ?? 0) < version && known.isSettled : !is_deleted;
    });
    const carried = news.flatMap(({ roi }) => roi ?? []);
    if (carried.length) this.store.applyRemoteChanges(carried);
    for (const isDeleted of [false, true]) {
      const ids = news.filter((item) => !item.roi && item.is_deleted === isDeleted).map(({ id }) => id);
      for (let start = 0; start < ids.length; start += IDS_PER_REQUEST) {
        this.store.applyRemoteChanges(await roisByIds(this.canvas, ids.slice(start, start + IDS_PER_REQUEST), isDeleted));
      }
    }
  }

  private leave(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    this.lastPresence = "";
    this.lastPresenceAt = 0;
    const options = { method: "DELETE", body: { tab: this.tab }, isUnattended: true, keepalive: true };
    call(this.url, options).catch(() => undefined); // presence also expires on the server
  }
}
