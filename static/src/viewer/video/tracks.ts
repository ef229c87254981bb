/** ROIs on several frames: setting, removing and reaching key frames, and tracking of outlines by key points. */

import { required } from "../../dom/elements";
import { API_ROOT, ApiError, call } from "../lib/http";
import { waitForJob } from "../lib/jobs";
import type { Job } from "../lib/jobs";
import type { History } from "../lib/history";
import type { StageNotice } from "../lib/stage_notice";
import type { FrameRef, KeyFrame } from "../lib/types";
import { roiGet } from "../rois/store/api";
import type { RoiEdits } from "../rois/store/edits";
import type { RoiState } from "../rois/store/roi_state";
import type { RoiStore } from "../rois/store/roi_store";
import { begunAt, endedAt, keyFrames, nextKeyFrame, outlineOn, withKeyFrame, withoutFrame } from "../rois/shapes/track";
import type { RoiLayer } from "../rois/rendering/roi_layer";
import type { VideoPlayer } from "./player";

/** A save takes a second; after ten, it is considered blocked. */
const [SAVE_ASKS, SAVE_ASK_EVERY_MS] = [33, 300];

export interface TrackParts {
  root: HTMLElement;
  store: RoiStore;
  edits: RoiEdits;
  layer: RoiLayer;
  history: History;
  notice: StageNotice;
}

type TrackAction = "before" | "after" | "key" | "outside" | "begin" | "end" | "follow" | "back" | "cancel" | "leave";
type Change = (roi: RoiState["trackedOutline"], frame: FrameRef) => KeyFrame[] | null;

export class Tracks {
  /** The ROI that was selected last: it stays the target of changes on frames where it is absent. */
  private active: RoiState | null = null;
  private job: string | null = null;
  private readonly row: HTMLElement;

  constructor(
    private readonly parts: TrackParts,
    private readonly player: VideoPlayer,
  ) {
    const { root, layer, store } = parts;
    this.row = required(root, "[data-track-row]");
    for (const button of this.row.querySelectorAll<HTMLButtonElement>("[data-track]")) {
      button.addEventListener("click", () => this.actions[button.dataset.track as TrackAction]());
    }
    layer.on("select", (state) => this.choose(state));
    player.on("frame", () => this.show());
    store.on("changed", (state) => {
      if (state === this.active) this.show();
    });
    store.on("removed", (states) => {
      if (this.active && states.includes(this.active)) this.leave();
    });
  }

  /** Actions of its buttons and keys. */
  readonly actions: Record<TrackAction, () => void> = {
    before: () => this.seekKeyFrame(-1),
    after: () => this.seekKeyFrame(1),
    key: () => this.keyHere(),
    outside: () => this.change("Not on this frame", (roi, frame) => withoutFrame(roi, frame, (index) => this.player.frames.at(index))),
    begin: () => this.change("Begins here", begunAt),
    end: () => this.change("Ends here", endedAt),
    follow: () => void this.follow(false),
    back: () => void this.follow(true),
    cancel: () => void this.cancel(),
    leave: () => this.leave(),
  };

  private choose(state: RoiState | null): void {
    if (state?.frame) this.active = state;
    this.show();
  }

  private leave(): void {
    this.active = null;
    this.show();
  }

  private seekKeyFrame(by: 1 | -1): void {
    const { active, player } = this;
    if (!active) return this.parts.notice.show("Select a region first.");
    const to = nextKeyFrame(active.trackedOutline, player.index, by);
    if (to === null) return this.parts.notice.show(by > 0 ? "No later key frame." : "No earlier key frame.");
    void player.seek(to).then(() => this.select(active));
  }

  private select(state: RoiState): void {
    if (state.isInView && !state.deleted) this.parts.layer.select(state.id);
  }

  /** Add a key frame here from the outline on this frame, or the nearest in time. */
  private keyHere(): void {
    this.change("Key frame", (roi, frame) => {
      if (roi.frame?.index === frame.index && !roi.track.some((key) => key.index === frame.index)) return roi.track;
      const here = outlineOn(roi, frame.index) ?? nearestOutline(roi, frame.index);
      if (roi.frame?.index === frame.index) return roi.track.filter((key) => key.index !== frame.index);
      return here && withKeyFrame(roi, frame, here);
    });
  }

  private change(label: string, make: Change): void {
    const { active, player } = this;
    const { notice, edits, layer } = this.parts;
    const { frame } = player;
    if (!active || active.deleted || !frame) return notice.show("Select a region first.");
    const track = make(active.trackedOutline, frame);
    if (track === null) return notice.show("It has no other key frame: delete the region instead.");
    if (track === active.track) return notice.show("This frame is already a key frame.");
    edits.change(active, { track }, label);
    if (active.isInView) this.select(active);
    else layer.select(null);
    this.show();
  }

  /** Track the outline from this frame, which becomes a key frame first. */
  private async follow(isBack: boolean): Promise<void> {
    const { active, player } = this;
    const { notice } = this.parts;
    if (!active || !player.frame) return notice.show("Select a region first.");
    if (this.job) return notice.show("It is already being followed.");
    const from = player.frame.index;
    const outline = outlineOn(active.trackedOutline, from);
    if (!outline) return notice.show("It is not on this frame: press Y for a key frame here.");
    if (!keyFrames(active.trackedOutline).some((key) => key.index === from)) this.keyHere();
    try {
      if (!(await isSaved(active))) return notice.show("This region is not saved yet. Try again in a moment.");
      const version = active.server?.version ?? 0;
      const body = { from_index: from, backward: isBack };
      const response = await call(`${API_ROOT}/rois/${active.id}/track/`, { method: "POST", body, ifMatch: version });
      const job = (await response.json()) as Job;
      this.job = job.id;
      this.show();
      await this.wait(active, job);
    } catch (error) {
      notice.show(error instanceof ApiError ? error.message : "It could not be followed.");
    } finally {
      this.job = null;
      this.show();
    }
  }

  private async wait(state: RoiState, job: Job): Promise<void> {
    const now = await waitForJob(job, (one) => this.showProgress(one));
    const { notice } = this.parts;
    if (now.state !== "succeeded") return notice.show(now.error?.message || "Following was cancelled.");
    await this.recordResult(state);
    notice.show(now.outcome ? `Followed, and ${now.outcome}. Correct it there, and follow it again.` : "Followed to the end.");
  }

  /** Record the result of the job as one undo step. */
  private async recordResult(state: RoiState): Promise<void> {
    const before = state.track;
    const { store, history, edits } = this.parts;
    const roi = await roiGet(state.id);
    store.merge([roi]);
    const after = state.track;
    if (before === after) return;
    const set = (track: KeyFrame[]) => (): void => edits.replay(state, { track });
    history.record({ label: "Follow", undo: set(before), redo: set(after) });
    state.view(this.player.frame);
    this.parts.layer.refresh(state);
  }

  private async cancel(): Promise<void> {
    if (this.job) await call(`${API_ROOT}/jobs/${this.job}/cancel/`, { method: "POST" }).catch(() => undefined);
  }

  private showProgress({ progress: { done, total }, state }: Job): void {
    const text = state === "queued" ? "Waiting…" : `Following… frame ${done} of ${total}`;
    required(this.row, "[data-track-state]").textContent = text;
  }

  private show(): void {
    const { active, player, row } = this;
    row.hidden = active === null;
    if (!active) return;
    const { trackedOutline: tracked } = active;
    const keys = keyFrames(tracked);
    const here = keys.find((key) => key.index === player.index);
    row.toggleAttribute("data-following", this.job !== null);
    required(row, "[data-track-name]").textContent = active.name || "Region";
    if (!this.job) required(row, "[data-track-state]").textContent = stateText(active, keys, here, player.index);
    for (const button of row.querySelectorAll<HTMLButtonElement>("[data-track]")) {
      const action = button.dataset.track;
      if (action === "before" || action === "after") button.disabled = nextKeyFrame(tracked, player.index, action === "after" ? 1 : -1) === null;
      else if (action === "cancel") button.hidden = this.job === null;
      else if (action !== "leave") button.disabled = active.locked || this.job !== null;
    }
  }
}

/** Wait until the ROI is saved; returns false on timeout. */
async function isSaved(state: RoiState): Promise<boolean> {
  for (let attempt = 0; attempt < SAVE_ASKS; attempt += 1) {
    if (state.isSettled && state.server) return true;
    await new Promise((resolve) => setTimeout(resolve, SAVE_ASK_EVERY_MS));
  }
  return false;
}

function nearestOutline(roi: RoiState["trackedOutline"], index: number): ReturnType<typeof outlineOn> {
  const shown = keyFrames(roi).filter((key) => key.geometry !== null);
  const [first] = shown.sort((a, b) => Math.abs(a.index - index) - Math.abs(b.index - index));
  return first?.geometry ? { geometry: first.geometry, shape: first.shape } : null;
}

/** "3 key frames, 12 to 80 · followed here, ± 0.4 px". */
function stateText({ trackedOutline: tracked, isInView }: RoiState, keys: KeyFrame[], here: KeyFrame | undefined, index: number): string {
  if (!tracked.track.length) return isInView ? "on this frame only" : "on another frame";
  const span = `${keys.length} key frames, ${(keys[0]?.index ?? 0) + 1} to ${(keys.at(-1)?.index ?? 0) + 1}`;
  if (here?.outside || !outlineOn(tracked, index)) return `${span} · not on this frame`;
  if (here) return `${span} · ${here.by === "tracking" ? `followed here, ± ${here.drift_px.toFixed(1)} px` : "key frame"}`;
  return `${span} · between two`;
}
