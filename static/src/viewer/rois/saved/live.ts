/**
 * Others on the same canvas: asks every POLL_MS what changed and who is here, while the page is visible.
 * Their changes come in by version; what is not saved here is never touched.
 */

import { ApiError, API_ROOT, call } from "../../lib/http";
import { Emitter } from "../../lib/events";
import type { Roi } from "../../lib/types";
import { randomUuid } from "../../lib/uuid";
import type { Bounds } from "../shapes/outlines";
import { roisByIds } from "./api";
import type { RoiStore } from "./store";

/** Small ROIs come with the answer: others' edits are here about a second after they were saved. */
export const POLL_MS = 1000;
/** A sign of life; the server waits for two of them. */
export const SIGN_MS = 10_000;
/** A moving view is reported at most this often. */
const MOVE_MS = 2000;
/** After an error: the server has other things to do. */
const PAUSE_MS = 8000;
/** Of one request for ROIs. */
const IDS_AT_ONCE = 100;

export interface Person {
  id: string;
  name: string;
  initials: string;
  /** 0 to 7, the same on every page. */
  hue: number;
  view: Bounds | null;
  /** The ROI they have chosen. */
  roi: string | null;
}

interface Change {
  id: string;
  version: number;
  is_deleted: boolean;
  /** As it is now, where it is small. */
  roi: Roi | null;
}

interface CanvasNow {
  cursor: string;
  changed: Change[];
  has_more: boolean;
  people: Person[];
}

/** What this page tells the others. */
export interface Here {
  view: Bounds | null;
  roi: string | null;
}

interface LiveEvents {
  people: Person[];
}

export class Live extends Emitter<LiveEvents> {
  people: Person[] = [];
  private readonly tab = randomUuid();
  private readonly url: string;
  private cursor: string | null = null;
  private etag = "";
  private timer: ReturnType<typeof setTimeout> | null = null;
  private told = "";
  private toldAt = 0;
  private isEnded = false;
  private isGuest = false;

  constructor(
    private readonly canvas: string,
    private readonly store: RoiStore,
    private readonly here: () => Here,
  ) {
    super();
    this.url = `${API_ROOT}/canvases/${canvas}/live/`;
  }

  start(): void {
    document.addEventListener("visibilitychange", () => (document.hidden ? this.leave() : this.poll()));
    addEventListener("pagehide", () => this.leave());
    this.poll();
  }

  private readonly poll = (): void => {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    if (document.hidden || this.isEnded) return;
    void this.round().then((pause) => {
      if (this.timer) clearTimeout(this.timer);
      this.timer = this.isEnded ? null : setTimeout(this.poll, pause);
    });
  };

  /** One question and, where it is time, one sign of life; how long to wait for the next. */
  async round(): Promise<number> {
    try {
      await this.tell();
      await this.ask();
      return POLL_MS;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.isEnded = [401, 403, 404].includes(error.status);
      return PAUSE_MS;
    }
  }

  private async tell(): Promise<void> {
    if (this.isGuest) return;
    const body = { tab: this.tab, ...this.here() };
    const text = JSON.stringify(body);
    const age = Date.now() - this.toldAt;
    if (age < (text === this.told ? SIGN_MS : MOVE_MS)) return;
    this.told = text;
    this.toldAt = Date.now();
    try {
      await call(this.url, { method: "PUT", body, isUnattended: true });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      this.isGuest = true; // looks on, and is not seen
    }
  }

  private async ask(): Promise<void> {
    const query = new URLSearchParams({ tab: this.tab, ...(this.cursor && { since: this.cursor }) });
    const response = await call(`${this.url}?${query}`, { isUnattended: true, etag: this.etag });
    if (response.status === 304) return;
    const now = (await response.json()) as CanvasNow;
    await this.take(now);
    this.etag = response.headers.get("ETag") ?? "";
    this.cursor = now.cursor;
  }

  private async take({ changed, has_more, people }: CanvasNow): Promise<void> {
    this.people = people;
    this.emit("people", people);
    if (has_more) return this.store.load();
    const news = changed.filter(({ id, version, is_deleted }) => {
      const known = this.store.states.get(id);
      return known ? (known.server?.version ?? 0) < version && known.isSettled : !is_deleted;
    });
    const carried = news.flatMap(({ roi }) => roi ?? []);
    if (carried.length) this.store.takeNews(carried);
    for (const isDeleted of [false, true]) {
      const ids = news.filter((one) => !one.roi && one.is_deleted === isDeleted).map(({ id }) => id);
      for (let start = 0; start < ids.length; start += IDS_AT_ONCE) {
        this.store.takeNews(await roisByIds(this.canvas, ids.slice(start, start + IDS_AT_ONCE), isDeleted));
      }
    }
  }

  private leave(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    this.told = "";
    this.toldAt = 0;
    const options = { method: "DELETE", body: { tab: this.tab }, isUnattended: true, keepalive: true };
    call(this.url, options).catch(() => undefined); // it ends by itself as well
  }
}
