/**
 * A video on the pixel plane. At rest it shows the exact frame, which the server decodes by its PTS.
 * While playing it shows the media element; a pause goes to the exact frame at its clock.
 */

import type BaseLayer from "ol/layer/Base";
import type Projection from "ol/proj/Projection";

import { Emitter } from "../lib/events";
import { FrameImages, FrameTable } from "./frames";
import { PlanePicture } from "../map/plane_picture";
import type { CanvasData, CanvasVideo, FrameRef } from "../lib/types";

/** Frames fetched ahead in the direction of the last step: what is seen while a key is held. */
const PREFETCH_STEPS = 3;
/** Magnified more than twice, a frame shows its pixels as squares. */
const SQUARES_BELOW = 0.5;

/** A seek to the very start of a frame may show the one before it. */
const JUST_INSIDE_S = 1e-4;

interface VideoEvents {
  /** Another frame is on screen. `exact` is false while playing. */
  frame: { frame: FrameRef; exact: boolean };
  playing: boolean;
  loading: boolean;
  error: string;
}

export class VideoPlayer extends Emitter<VideoEvents> {
  index = -1;
  isPlaying = false;
  private wanted = -1;
  private readonly picture: PlanePicture;
  private readonly images: FrameImages;
  private readonly media = document.createElement("video");

  private constructor(
    private readonly canvas: CanvasData,
    video: CanvasVideo,
    projection: Projection,
    readonly frames: FrameTable,
  ) {
    super();
    this.images = new FrameImages(video.frame_url);
    this.picture = new PlanePicture(projection, { className: "canvas-frame", squaresBelow: SQUARES_BELOW });
    Object.assign(this.media, { muted: true, playsInline: true, preload: "auto", src: video.media_url });
    this.media.addEventListener("ended", () => void this.pause());
    this.media.addEventListener("error", () => this.mediaFailed());
  }

  static async open(canvas: CanvasData, projection: Projection): Promise<VideoPlayer> {
    const video = canvas.video;
    if (!video) throw new TypeError("this canvas is not a video");
    return new VideoPlayer(canvas, video, projection, await FrameTable.load(video));
  }

  get layer(): BaseLayer {
    return this.picture.layer;
  }

  get frame(): FrameRef | null {
    return this.index < 0 ? null : this.frames.at(this.index);
  }

  /** Show exactly this frame. The last one asked for wins. */
  async seek(index: number): Promise<void> {
    if (this.isPlaying) this.stopMedia();
    const target = this.frames.clamp(index);
    const step = target - this.wanted;
    this.wanted = target;
    this.emit("loading", true);
    try {
      const image = await this.images.get(this.frames.at(target).pts);
      if (this.wanted !== target) return;
      this.show(image, target, true);
      this.emit("loading", false);
      this.prefetch(target, step);
    } catch (error) {
      if (this.wanted !== target) return;
      this.emit("loading", false);
      this.emit("error", error instanceof Error ? error.message : "The frame could not be read.");
    }
  }

  step(by: number): Promise<void> {
    return this.seek((this.wanted < 0 ? 0 : this.wanted) + by);
  }

  async toggle(): Promise<void> {
    await (this.isPlaying ? this.pause() : this.play());
  }

  async play(): Promise<void> {
    const isAtEnd = this.index >= this.frames.length - 1;
    this.media.currentTime = isAtEnd ? 0 : this.frames.mediaTime(Math.max(this.index, 0)) + JUST_INSIDE_S;
    try {
      await this.media.play();
    } catch {
      return this.mediaFailed();
    }
    this.isPlaying = true;
    this.emit("playing", true);
    this.follow();
  }

  async pause(): Promise<void> {
    if (!this.isPlaying) return;
    await this.seek(this.index);
  }

  private follow(): void {
    const onFrame = (mediaTime: number): void => {
      if (!this.isPlaying) return;
      this.show(this.media, this.frames.nearestToMediaTime(mediaTime), false);
      this.follow();
    };
    if ("requestVideoFrameCallback" in this.media) {
      this.media.requestVideoFrameCallback((_now, { mediaTime }) => onFrame(mediaTime));
    } else {
      requestAnimationFrame(() => onFrame(this.media.currentTime));
    }
  }

  private stopMedia(): void {
    this.isPlaying = false;
    this.media.pause();
    this.emit("playing", false);
  }

  private mediaFailed(): void {
    if (this.isPlaying) this.stopMedia();
    this.emit("error", "This video cannot be played here; stepping through its frames still works.");
  }

  private show(image: CanvasImageSource, index: number, exact: boolean): void {
    const isNew = index !== this.index || exact;
    this.index = index;
    if (!exact) this.wanted = index;
    const { width, height } = this.canvas;
    this.picture.show({ image, width, height });
    if (isNew) this.emit("frame", { frame: this.frames.at(index), exact });
  }

  private prefetch(index: number, step: number): void {
    const stride = step === 0 ? 1 : step;
    for (let i = 1; i <= PREFETCH_STEPS; i += 1) {
      const next = index + i * stride;
      if (next >= 0 && next < this.frames.length) void this.images.get(this.frames.at(next).pts).catch(() => undefined);
    }
  }
}
