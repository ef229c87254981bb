/** The loaded ROIs of a canvas; emits events when they change. */

import { roiGet, roiPage, roiWindow } from "./api";
import type { RoiFields } from "./api";
import { SavedStore } from "../../lib/saving/saved_store";
import { RoiState } from "./roi_state";
import type { StoredEdit } from "./roi_state";
import { RoiSync } from "./sync";
import type { CanvasData, Roi } from "../../lib/types";

/** Largest number of ROIs that are all loaded (five requests); of more, only those in the window. */
export const LOAD_ALL_LIMIT = 5000;
/** Twice the time budget of an embedding: the first answer is usually yes. */
const REFRESH_DELAY_MS = 4000;
/** Largest number of ROIs loaded for a window, the largest first: more would overlap and be slow to draw. */
const WINDOW_LIMIT = 3000;

export class RoiStore extends SavedStore<RoiFields, Roi, RoiState> {
  /** Count of the server plus changes since, used while not all ROIs are loaded. */
  private counted = 0;
  isWindowed = false;
  /** Number of ROIs in the window; may exceed those loaded. */
  inWindow = 0;
  isLoadingWindow = false;
  private refreshTimer: ReturnType<typeof setTimeout> | null = null;
  private windowRequest: AbortController | null = null;

  constructor(
    private readonly canvas: CanvasData,
    leaving?: AbortSignal,
  ) {
    super(new RoiSync(canvas.id, leaving));
    this.sync.on("confirmed", (state) => {
      const notes = state.server?.notes ?? [];
      if (notes.length && !state.deleted) this.emit("noted", notes);
    });
  }

  protected stateOf(roi: Roi): RoiState {
    return RoiState.fromServer(roi);
  }

  /** Number of ROIs of the image, loaded or not. */
  get total(): number {
    return this.isWindowed ? this.counted : this.existingObjects().length;
  }

  async load(): Promise<void> {
    try {
      let page = await roiPage(this.canvas.id);
      const count = page.count ?? page.rois.length;
      this.counted = count + this.unsentDifference();
      this.isWindowed = count > LOAD_ALL_LIMIT;
      if (!this.isWindowed) this.merge(page.rois);
      while (page.next && !this.isWindowed) {
        page = await roiPage(this.canvas.id, page.next);
        this.merge(page.rois);
      }
      this.emit("loaded", { total: this.total, windowed: this.isWindowed });
    } catch (error) {
      this.emit("error", error instanceof Error ? error.message : "The regions could not be loaded.");
    }
  }

  /** Difference between the count of the server and the count with this computer's drafts. */
  private unsentDifference(): number {
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
      this.dropOutside(new Set(rois.map((roi) => roi.id)));
      this.merge(rois);
      this.emit("loaded", { total: this.total, windowed: true });
    } catch (error) {
      if (!request.signal.aborted) this.emit("error", error instanceof Error ? error.message : "");
    }
  }

  /** Load an ROI that a link names and that is outside the window. */
  async fetchOne(id: string): Promise<void> {
    try {
      const roi = await roiGet(id);
      if (roi.canvas === this.canvas.id) this.merge([roi]);
    } catch {
      // the caller reports that it is missing
    }
  }

  /** Check after a pause whether similar cases can be searched for this ROI. */
  refreshEmbedded(state: RoiState): void {
    if (this.refreshTimer || !state.isSettled || !state.server || state.server.is_embedded) return;
    this.refreshTimer = setTimeout(() => void this.fetchEmbedded(state), REFRESH_DELAY_MS);
  }

  private async fetchEmbedded(state: RoiState): Promise<void> {
    const roi = await roiGet(state.id).catch(() => null);
    this.refreshTimer = null;
    if (!roi || !state.isSettled || roi.version !== state.server?.version) return;
    state.server = roi;
    if (!state.deleted) this.emit("changed", state);
  }

  private dropOutside(kept: Set<string>): void {
    const removed = this.existingObjects().filter((state) => state.isSettled && state.server && !kept.has(state.id));
    for (const state of removed) this.states.delete(state.id);
    if (removed.length) this.emit("removed", removed);
  }

  /** Apply changes of other users since the ROIs were loaded, and update the count. */
  applyRemoteChanges(rois: Roi[]): void {
    const before = this.existingObjects().length;
    this.merge(rois);
    this.counted += this.existingObjects().length - before;
  }

  /** Add this many to the count, or take them off. */
  adjustCount(change: number): void {
    this.counted += change;
  }

  override add(state: RoiState): void {
    this.counted += 1;
    super.add(state);
  }

  /** Add changes stored by an earlier visit in this browser, and send them. */
  holdStored(stored: StoredEdit): void {
    this.addStored(RoiState.fromStored(stored));
  }

  override forget(state: RoiState): void {
    if (!state.deleted) this.counted -= 1;
    super.forget(state);
  }
}
