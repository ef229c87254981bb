/**
 * A video on the pixel plane. At rest it shows the exact frame, which the server decodes by its PTS.
 * While playing it shows the media element; a pause goes to the exact frame at its clock.
 */

import type BaseLayer from "ol/layer/Base";
import type Projection from "ol/proj/Projection";

import { Emitter } from "../lib/events";
import { FrameImages, around } from "./frame_images";
import { FrameTable } from "./frames";
import { PlanePicture } from "../map/plane_picture";
import type { CanvasData, CanvasVideo, FrameRef } from "../lib/types";

/** What the menu and the keys J and L offer. */
export const SPEEDS = [0.25, 0.5, 1, 1.5, 2, 4];
const RGBA_BYTES = 4;
/** A jump this long is no stepping: its neighbours are what comes next. */
const LONGEST_STRIDE = 10;
/** Magnified more than twice, a frame shows its pixels as squares. */
const SQUARES_BELOW = 0.5;

/** A seek to the very start of a frame may show the one before it. */
const JUST_INSIDE_S = 1e-4;

interface VideoEvents {
  /** Another frame is on screen. `exact` is false while playing. */
  frame: { frame: FrameRef; exact: boolean };
  playing: boolean;
  /** Times the pace of the recording. */
  speed: number;
  loading: boolean;
  error: string;
}

export class VideoPlayer extends Emitter<VideoEvents> {
  index = -1;
  isPlaying = false;
  /** First and last frame of what plays over and over; null: to the end, once. */
  loop: [number, number] | null = null;
  private wanted = -1;
  private readonly picture: PlanePicture;
  private readonly images: FrameImages;
  private readonly media = document.createElement("video");

  private constructor(
    private readonly canvas: CanvasData,
    readonly video: CanvasVideo,
    projection: Projection,
    readonly frames: FrameTable,
  ) {
    super();
    this.images = new FrameImages(video.frame_url, canvas.width * canvas.height * RGBA_BYTES);
    this.picture = new PlanePicture(projection, { className: "canvas-frame", squaresBelow: SQUARES_BELOW });
    Object.assign(this.media, { muted: true, playsInline: true, preload: "auto", src: video.media_url });
    this.media.addEventListener("ended", () => this.mediaEnded());
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
    if (!this.images.has(this.frames.at(target).pts)) this.emit("loading", true);
    try {
      const image = await this.images.get(this.frames.at(target).pts);
      if (this.wanted !== target) return;
      this.images.shown = image;
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
    const [first, last] = this.loop ?? [0, this.frames.length - 1];
    const isOutside = this.index >= last || this.index < first;
    this.goTo(isOutside ? first : this.index);
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

  get speed(): number {
    return this.media.playbackRate;
  }

  setSpeed(speed: number): void {
    this.media.defaultPlaybackRate = this.media.playbackRate = speed;
    this.emit("speed", speed);
  }

  /** To the next of the speeds, `by` 1 faster or -1 slower; the last stays. */
  changeSpeed(by: number): void {
    const at = SPEEDS.findIndex((speed) => speed >= this.speed);
    this.setSpeed(SPEEDS[Math.min(Math.max(at + by, 0), SPEEDS.length - 1)] ?? 1);
  }

  private goTo(index: number): void {
    this.media.currentTime = index <= 0 ? 0 : this.frames.mediaTime(index) + JUST_INSIDE_S;
  }

  private follow(): void {
    const onFrame = (mediaTime: number): void => {
      if (!this.isPlaying) return;
      const index = this.frames.nearestToMediaTime(mediaTime);
      if (this.loop && index >= this.loop[1]) this.goTo(this.loop[0]);
      this.show(this.media, index, false);
      this.follow();
    };
    if ("requestVideoFrameCallback" in this.media) {
      this.media.requestVideoFrameCallback((_now, { mediaTime }) => onFrame(mediaTime));
    } else {
      requestAnimationFrame(() => onFrame(this.media.currentTime));
    }
  }

  private mediaEnded(): void {
    if (!this.loop) return void this.pause();
    this.goTo(this.loop[0]);
    void this.media.play();
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
    const stride = Math.abs(step) > LONGEST_STRIDE ? 1 : step;
    const next = around(index, stride, this.frames.length, this.images.room);
    this.images.ahead(next.map((at) => this.frames.at(at).pts));
  }
}
