/** The ROIs of this canvas that the page holds: loaded, kept fresh, and who is told when one changes. */

import { roiGet, roiPage, roiWindow } from "./api";
import { Emitter } from "../../lib/events";
import { RoiState } from "./state";
import { RoiSync } from "./sync";
import type { CanvasData, Roi } from "../../lib/types";

/** Up to this many, all ROIs are loaded (five requests); beyond, only those in the window. */
export const LOAD_ALL_LIMIT = 5000;
/** Twice the time budget of an embedding: the first answer is usually yes. */
const FRESHEN_MS = 4000;
/** Only the largest in a window: more would overlap beyond recognition and be slow to draw. */
const WINDOW_LIMIT = 3000;

interface RoiEvents {
  added: RoiState[];
  changed: RoiState;
  removed: RoiState[];
  loaded: { total: number; windowed: boolean };
  error: string;
  /** The server repaired or clipped an outline, and says so. */
  noted: string[];
}

export class RoiStore extends Emitter<RoiEvents> {
  readonly states = new Map<string, RoiState>();
  readonly sync: RoiSync;
  /** What the server counted, and what changed since: counts where not all ROIs are here. */
  private counted = 0;
  isWindowed = false;
  /** How many the window holds, where not all ROIs are loaded; it may be more than are loaded. */
  inWindow = 0;
  isLoadingWindow = false;
  private freshening: ReturnType<typeof setTimeout> | null = null;
  private windowRequest: AbortController | null = null;

  constructor(private readonly canvas: CanvasData) {
    super();
    this.sync = new RoiSync(canvas.id);
    this.sync.on("adopted", (state) => this.emit("changed", state));
    this.sync.on("troubled", (state) => this.emit("changed", state));
    this.sync.on("confirmed", (state) => {
      this.emit("changed", state);
      const notes = state.server?.notes ?? [];
      if (notes.length && !state.deleted) this.emit("noted", notes);
    });
  }

  /** How many ROIs the image has, including those that are not loaded. */
  get total(): number {
    return this.isWindowed ? this.counted : this.live().length;
  }

  live(): RoiState[] {
    return [...this.states.values()].filter((state) => !state.deleted);
  }

  get(id: string | null): RoiState | null {
    return (id && this.states.get(id)) || null;
  }

  async load(): Promise<void> {
    try {
      let page = await roiPage(this.canvas.id);
      const count = page.count ?? page.rois.length;
      this.counted = count + this.unsent();
      this.isWindowed = count > LOAD_ALL_LIMIT;
      if (!this.isWindowed) this.merge(page.rois);
      while (page.next && !this.isWindowed) {
        page = await roiPage(this.canvas.id, page.next);
        this.merge(page.rois);
      }
      this.emit("loaded", { total: this.total, windowed: this.isWindowed });
    } catch (error) {
      this.emit("error", error instanceof Error ? error.message : "The ROIs could not be loaded.");
    }
  }

  /** By how much the drafts of this computer change what the server counts. */
  private unsent(): number {
    const states = [...this.states.values()];
    const drawn = states.filter(({ server, deleted }) => !server && !deleted).length;
    return drawn - states.filter(({ server, deleted }) => deleted && server?.deleted_at === null).length;
  }

  /** Load the ROIs in the window, where there are too many to load them all. */
  async loadWindow(bounds: [number, number, number, number]): Promise<void> {
    if (!this.isWindowed) return;
    this.windowRequest?.abort();
    const request = new AbortController();
    this.windowRequest = request;
    this.isLoadingWindow = true;
    try {
      const { rois, count } = await roiWindow(this.canvas.id, { bounds, limit: WINDOW_LIMIT }, request.signal);
      this.inWindow = count;
      this.isLoadingWindow = false;
      this.forgetOutside(new Set(rois.map((roi) => roi.id)));
      this.merge(rois);
      this.emit("loaded", { total: this.total, windowed: true });
    } catch (error) {
      if (!request.signal.aborted) this.emit("error", error instanceof Error ? error.message : "");
    }
  }

  /** Load one ROI that a link names and the window does not hold. */
  async fetchOne(id: string): Promise<void> {
    try {
      const roi = await roiGet(id);
      if (roi.canvas === this.canvas.id) this.merge([roi]);
    } catch {
      // the caller says that it is not there
    }
  }

  /** Ask a little later whether similar cases can be searched for this ROI. */
  freshen(state: RoiState): void {
    if (this.freshening || !state.isSettled || !state.server || state.server.is_embedded) return;
    this.freshening = setTimeout(() => void this.fetchFresh(state), FRESHEN_MS);
  }

  private async fetchFresh(state: RoiState): Promise<void> {
    const roi = await roiGet(state.id).catch(() => null);
    this.freshening = null;
    if (!roi || !state.isSettled || roi.version !== state.server?.version) return;
    state.server = roi;
    if (!state.deleted) this.emit("changed", state);
  }

  private forgetOutside(kept: Set<string>): void {
    const gone = this.live().filter((state) => state.isSettled && state.server && !kept.has(state.id));
    for (const state of gone) this.states.delete(state.id);
    if (gone.length) this.emit("removed", gone);
  }

  merge(rois: Roi[]): void {
    const added: RoiState[] = [];
    for (const roi of rois) {
      const known = this.states.get(roi.id);
      if (!known) {
        const state = RoiState.fromServer(roi);
        this.states.set(roi.id, state);
        if (!state.deleted) added.push(state);
      } else if (known.isSettled && (known.server?.version ?? 0) < roi.version) {
        const wasDeleted = known.deleted;
        known.takeServer(roi);
        this.announce(known, wasDeleted);
      }
    }
    if (added.length) this.emit("added", added);
  }

  /** Take over what others did since the ROIs were loaded, and count it. */
  takeNews(rois: Roi[]): void {
    const before = this.live().length;
    this.merge(rois);
    this.counted += this.live().length - before;
  }

  /** Add this many to the count, or take them off. */
  countedBy(change: number): void {
    this.counted += change;
  }

  /** Hold an ROI that was drawn here. */
  add(state: RoiState): void {
    this.states.set(state.id, state);
    this.counted += 1;
    this.emit("added", [state]);
  }

  /** Hold what waited on this computer, and send it. */
  hold(state: RoiState): void {
    if (this.states.has(state.id)) return;
    this.states.set(state.id, state);
    if (!state.deleted) this.emit("added", [state]);
    this.sync.schedule(state, 0);
  }

  /** Let go of one that was never sent. */
  forget(state: RoiState): void {
    this.states.delete(state.id);
    if (!state.deleted) this.counted -= 1;
    this.emit("removed", [state]);
  }

  /** Hold a state again that the history still has but a windowed load has let go of. */
  reattach(state: RoiState): void {
    const present = this.states.get(state.id);
    if (present === state) return;
    if (present?.server && present.server.version !== state.server?.version) state.takeServer(present.server);
    this.states.set(state.id, state);
    this.emit("added", [state]);
  }

  /** Tell of a state that was changed here; `wasDeleted` is what it was before. */
  announce(state: RoiState, wasDeleted: boolean): void {
    if (state.deleted && !wasDeleted) this.emit("removed", [state]);
    else if (!state.deleted && wasDeleted) this.emit("added", [state]);
    else if (!state.deleted) this.emit("changed", state);
  }

  /** Tell of many at once: thousands that come or go are one piece of news. */
  announceAll(changed: { state: RoiState; wasDeleted: boolean }[]): void {
    const gone = changed.filter(({ state, wasDeleted }) => state.deleted && !wasDeleted);
    const back = changed.filter(({ state, wasDeleted }) => !state.deleted && wasDeleted);
    if (gone.length) this.emit("removed", gone.map(({ state }) => state));
    if (back.length) this.emit("added", back.map(({ state }) => state));
    for (const { state, wasDeleted } of changed) if (!state.deleted && !wasDeleted) this.emit("changed", state);
  }
}
