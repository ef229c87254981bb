/** The ROIs of this canvas: loading, changing, deleting. Every change goes through here. */

import { roiGet, roiPage, roiWindow } from "./api";
import type { RoiPatch } from "./api";
import { Emitter } from "../lib/events";
import type { History } from "../lib/history";
import { RoiState } from "./state";
import { RoiSync } from "./sync";
import type { CanvasData, FrameRef, Roi, RoiGeometry } from "../lib/types";

/** Up to here all ROIs are loaded at once; beyond, those of the window. */
export const LOAD_ALL_LIMIT = 5000;
const FRESHEN_MS = 4000;
const WINDOW_LIMIT = 3000;
const MIN_SIZE_SCREEN_PX = 3;

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
  total = 0;
  isWindowed = false;
  private freshening: ReturnType<typeof setTimeout> | null = null;
  private windowRequest: AbortController | null = null;

  constructor(
    private readonly canvas: CanvasData,
    private readonly history: History,
  ) {
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

  live(): RoiState[] {
    return [...this.states.values()].filter((state) => !state.deleted);
  }

  get(id: string | null): RoiState | null {
    return (id && this.states.get(id)) || null;
  }

  async load(): Promise<void> {
    try {
      for (let page = 1; ; page += 1) {
        const { count, rois, isLast } = await roiPage(this.canvas.id, page);
        this.total = count;
        this.isWindowed = count > LOAD_ALL_LIMIT;
        if (!this.isWindowed) this.merge(rois);
        if (isLast || this.isWindowed) break;
      }
      this.emit("loaded", { total: this.total, windowed: this.isWindowed });
    } catch (error) {
      this.emit("error", error instanceof Error ? error.message : "The ROIs could not be loaded.");
    }
  }

  /** Load what the window shows (only where there are too many to load at once). */
  async loadWindow(bounds: [number, number, number, number], resolution: number): Promise<void> {
    if (!this.isWindowed) return;
    this.windowRequest?.abort();
    const request = new AbortController();
    this.windowRequest = request;
    const window = { bounds, minSizePx: resolution * MIN_SIZE_SCREEN_PX, limit: WINDOW_LIMIT };
    try {
      const found = await roiWindow(this.canvas.id, window, request.signal);
      this.forgetOutside(new Set(found.map((roi) => roi.id)));
      this.merge(found);
    } catch (error) {
      if (!request.signal.aborted) this.emit("error", error instanceof Error ? error.message : "");
    }
  }

  /** One ROI a link names and the window does not hold. */
  async fetchOne(id: string): Promise<void> {
    try {
      const roi = await roiGet(id);
      if (roi.canvas === this.canvas.id) this.merge([roi]);
    } catch {
      // the caller tells that it is not there
    }
  }

  /** Ask now and then whether a saved ROI can be searched with yet. */
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
        known.takeServer(roi);
        this.emit("changed", known);
      }
    }
    if (added.length) this.emit("added", added);
  }

  create(geometry: RoiGeometry, label: string | null, frame: FrameRef | null): RoiState {
    const state = new RoiState(newId(), frame, { geometry, label, name: "" });
    this.states.set(state.id, state);
    this.total += 1;
    this.emit("added", [state]);
    this.sync.schedule(state);
    this.history.record({
      label: "Draw ROI",
      undo: () => this.setDeleted(state, true),
      redo: () => this.setDeleted(state, false),
    });
    return state;
  }

  change(state: RoiState, patch: RoiPatch, label: string): void {
    const before: RoiPatch = {};
    for (const key of Object.keys(patch)) {
      Object.assign(before, { [key]: state[key as keyof RoiPatch] });
    }
    this.apply(state, patch);
    this.history.record({
      label,
      undo: () => this.apply(state, before),
      redo: () => this.apply(state, patch),
    });
  }

  remove(state: RoiState): void {
    this.setDeleted(state, true);
    this.history.record({
      label: "Delete ROI",
      undo: () => this.setDeleted(state, false),
      redo: () => this.setDeleted(state, true),
    });
  }

  /** The user keeps what stands here: send it on top of theirs. */
  keepMine(state: RoiState, theirs: Roi): void {
    state.server = theirs;
    state.problem = null;
    this.sync.schedule(state, 0);
  }

  /** The user takes theirs; what stood here comes back with undo. */
  takeTheirs(state: RoiState, theirs: Roi): void {
    const { geometry, label, name } = state;
    const mine = { geometry, label, name };
    const wasDeleted = state.deleted;
    state.takeServer(theirs);
    this.announce(state, wasDeleted);
    this.sync.schedule(state, 0);
    const { geometry: g, label: l, name: n } = theirs;
    this.history.record({
      label: "Take the other version",
      undo: () => (wasDeleted ? this.setDeleted(state, true) : this.apply(state, mine)),
      redo: () => {
        this.setDeleted(state, theirs.deleted_at !== null);
        this.apply(state, { geometry: g, label: l, name: n });
      },
    });
  }

  private apply(state: RoiState, patch: RoiPatch): void {
    this.reattach(state);
    const wasDeleted = state.deleted;
    state.deleted = false;
    state.want(patch);
    this.announce(state, wasDeleted);
    this.sync.schedule(state);
  }

  private setDeleted(state: RoiState, deleted: boolean): void {
    this.reattach(state);
    const before = state.deleted;
    state.deleted = deleted;
    if (state.problem?.kind !== "conflict") state.problem = null;
    if (before !== deleted) this.total += deleted ? -1 : 1;
    this.announce(state, before);
    this.sync.schedule(state);
  }

  /** A windowed load may have let go of a state the history still holds. */
  private reattach(state: RoiState): void {
    const present = this.states.get(state.id);
    if (present === state) return;
    if (present?.server) state.server = present.server;
    this.states.set(state.id, state);
    this.emit("added", [state]);
  }

  private announce(state: RoiState, wasDeleted: boolean): void {
    if (state.deleted && !wasDeleted) this.emit("removed", [state]);
    else if (!state.deleted && wasDeleted) this.emit("added", [state]);
    else if (!state.deleted) this.emit("changed", state);
  }
}

/** A random UUID; `crypto.randomUUID` is missing on plain http. */
function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
