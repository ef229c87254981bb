/** The timeline of a video: the frame shown, the frames with ROIs, buttons to step and play. */

import { required } from "../../dom/elements";
import type { FrameStatus } from "./frame_status";
import type { RoiStore } from "../rois/store/roi_store";
import type { Labels } from "../rois/store/labels";
import { oncePerFrame } from "../lib/scheduling";
import { slider, trackContext } from "../lib/slider";
import { timeText } from "../lib/units";
import type { RoiState } from "../rois/store/roi_state";
import { uncertaintyPxAt, keyFrames } from "../rois/shapes/track";
import { filmstrip } from "./filmstrip";
import type { VideoPlayer } from "./player";
import { connectSpeed } from "./playback_speed";

export function timeline(root: HTMLElement, player: VideoPlayer, store: RoiStore, labels: Labels, leaving?: AbortSignal): Timeline {
  const host = required(root, "[data-timeline]");
  host.hidden = false;
  filmstrip(host, player);
  connectSpeed(required(host, "[data-speed]"), player, leaving);
  const created = new Timeline(host, player, store, labels);
  created.start();
  return created;
}

/** Share of the timeline's height for the frame status; ROI marks stay visible above it. */
const STATUS_SHARE = 0.34;
/** Height of the lane of a tracked ROI; more than three share lanes. */
const LANE_PX = 7;
const LANES = 3;
/** An uncertainty of this share of the ROI's size is drawn in full red; at twice as much, tracking ends. */
const DRIFT_SHARE = 0.05;

export class Timeline {
  private frameStatus: FrameStatus | null = null;
  private readonly scheduleMarks = oncePerFrame(() => this.drawMarks());
  private readonly track: HTMLElement;
  private readonly head: HTMLElement;
  private readonly marks: HTMLCanvasElement;

  constructor(
    private readonly host: HTMLElement,
    private readonly player: VideoPlayer,
    private readonly store: RoiStore,
    private readonly labels: Labels,
  ) {
    this.track = required(host, "[role=slider]");
    this.head = required(host, "[data-timeline-head]");
    this.marks = required<HTMLCanvasElement>(host, "[data-marks]");
  }

  start(): void {
    const { player, store } = this;
    for (const button of this.host.querySelectorAll<HTMLButtonElement>("[data-step]")) {
      button.addEventListener("click", () => void player.step(Number(button.dataset.step)));
    }
    required(this.host, "[data-play]").addEventListener("click", () => void player.toggle());
    player.on("playing", (playing) => this.showPlaying(playing));
    player.on("frame", () => this.showFrame());
    player.on("loading", (loading) => this.host.toggleAttribute("data-loading", loading));
    for (const name of ["added", "removed", "changed", "loaded"] as const) {
      store.on(name, () => this.scheduleMarks());
    }
    new ResizeObserver(() => this.scheduleMarks()).observe(this.track);
    this.makeSlider();
    this.track.setAttribute("aria-valuemax", String(player.frames.length - 1));
  }

  /** Colour the frames by their status in a mosaic. */
  showFrameStatus(frameStatus: FrameStatus): void {
    this.frameStatus = frameStatus;
    this.scheduleMarks();
  }

  private makeSlider(): void {
    const { track, player } = this;
    let frameIndex = 0;
    const seekFrame = oncePerFrame(() => void player.seek(frameIndex)); // a drag asks for one frame per redraw
    slider(track, {
      at: () => player.index,
      last: () => player.frames.length - 1,
      seek: (index) => void player.seek(index),
      drag: (share) => {
        frameIndex = share * (player.frames.length - 1);
        seekFrame();
      },
    });
  }

  private showPlaying(playing: boolean): void {
    const button = required(this.host, "[data-play]");
    button.setAttribute("aria-pressed", String(playing));
    button.setAttribute("aria-label", playing ? "Pause (Space)" : "Play (Space)");
  }

  private showFrame(): void {
    const { frame, frames } = this.player;
    if (!frame) return;
    const last = Math.max(frames.length - 1, 1);
    this.head.style.left = `${(100 * frame.index) / last}%`;
    const time = timeText(frame.time_s);
    required(this.host, "[data-frame-index]").textContent = `Frame ${frame.index + 1} / ${frames.length}`;
    required(this.host, "[data-frame-time]").textContent = time;
    required(this.host, "[data-frame-pts]").textContent = String(frame.pts);
    this.track.setAttribute("aria-valuenow", String(frame.index));
    this.track.setAttribute("aria-valuetext", `Frame ${frame.index + 1}, ${time}`);
  }

  /** Draw the lane of a tracked ROI with its key frames; red marks uncertain tracking. */
  private drawTrack(context: CanvasRenderingContext2D, state: RoiState, lane: number): void {
    const { marks, player } = this;
    const height = LANE_PX * devicePixelRatio;
    const top = marks.height - ((lane % LANES) + 1) * (height + devicePixelRatio);
    const last = Math.max(player.frames.length - 1, 1);
    const xOf = (index: number): number => (marks.width * index) / last;
    const keys = keyFrames(state.trackedOutline);
    const worst = DRIFT_SHARE * Math.sqrt(Math.max(state.server?.area_px ?? 1, 1));
    keys.forEach((key, at) => {
      const next = keys[at + 1];
      if (key.outside || !next) return;
      const [left, right] = [xOf(key.index), xOf(next.index)];
      context.fillStyle = this.labels.colorOf(state.label);
      context.fillRect(left, top, right - left, height);
      context.fillStyle = `rgb(200 0 0 / ${Math.min(uncertaintyPxAt(state.trackedOutline, key.index + 0.5) / worst, 1)})`;
      context.fillRect(left, top, right - left, height / 2);
    });
    for (const key of keys) {
      context.fillStyle = key.by === "tracking" ? "#ffffff" : "#000000";
      if (!key.outside) context.fillRect(xOf(key.index) - devicePixelRatio, top, 2 * devicePixelRatio, height);
    }
  }

  /** Draw the mosaic status of the frames, and a tick in the label's colour at each frame with an ROI. */
  private drawMarks(): void {
    const { marks, track, player } = this;
    const ratio = devicePixelRatio;
    const context = trackContext(marks, track);
    if (!context) return;
    const last = Math.max(player.frames.length - 1, 1);
    const { frameStatus } = this;
    if (frameStatus) {
      const height = marks.height * STATUS_SHARE;
      const indices = frameStatus.columns.index;
      const xOf = (row: number): number => (marks.width * Math.max((indices[row] ?? (indices[row - 1] ?? 0) + 1) - 0.5, 0)) / last;
      frameStatus.paint(context, marks.height - height, height, xOf);
    }
    const tracked = this.store.existingObjects().filter((state) => state.track.length > 0);
    tracked.forEach((state, lane) => this.drawTrack(context, state, lane));
    for (const state of this.store.existingObjects()) {
      if (!state.frame || state.track.length) continue;
      const x = (marks.width * player.frames.nearest(state.frame.pts)) / last;
      context.fillStyle = this.labels.colorOf(state.label);
      context.fillRect(Math.min(x - ratio, marks.width - 3 * ratio), 0, 3 * ratio, marks.height);
    }
  }
}
