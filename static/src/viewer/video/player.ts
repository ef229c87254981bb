/**
 * A video on the pixel plane. While paused it shows the exact frame, which the server decodes by its PTS. While playing
 * it shows the media element; a pause goes to the exact frame at its time.
 */

import type BaseLayer from "ol/layer/Base";
import type Projection from "ol/proj/Projection";

import { Emitter } from "../lib/events";
import { FrameImages, JUMP, prefetchOrder } from "./frame_images";
import { FrameTable } from "./frame_table";
import { ImageOverlay } from "../map/image_overlay";
import { Playback } from "./playback";
import type { CanvasData, CanvasVideo, FrameRef } from "../lib/types";

/** Speeds offered by the menu and the keys J and L. */
export const SPEEDS = [0.25, 0.5, 1, 1.5, 2, 4];
const RGBA_BYTES = 4;
/** Level-0 pixels per screen pixel below which pixels of a frame are drawn as squares. */
const SQUARES_BELOW = 0.5;

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
  private targetIndex = -1;
  private readonly picture: ImageOverlay;
  private readonly images: FrameImages;
  private readonly media = document.createElement("video");
  private readonly stillSurface = document.createElement("canvas");
  private readonly playback: Playback;

  private constructor(
    private readonly canvas: CanvasData,
    readonly video: CanvasVideo,
    projection: Projection,
    readonly frames: FrameTable,
  ) {
    super();
    this.images = new FrameImages(video.frame_url, canvas.width * canvas.height * RGBA_BYTES);
    this.picture = new ImageOverlay(projection, { className: "canvas-frame", squaresBelow: SQUARES_BELOW });
    this.playback = new Playback(this.media, frames, (index) => {
      this.show(this.playback.loop ? this.captureStill() : this.media, index, false);
    });
    Object.assign(this.media, { muted: true, playsInline: true, preload: "auto", src: video.media_url });
    this.media.addEventListener("ended", () => this.handleMediaEnd());
    this.media.addEventListener("error", () => this.handleMediaError());
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

  /** Show exactly this frame; the latest call wins. */
  async seek(index: number): Promise<void> {
    this.stopMedia();
    const target = this.frames.clamp(index);
    const step = target - this.targetIndex;
    this.targetIndex = target;
    if (!this.images.has(this.frames.at(target).pts)) this.emit("loading", true);
    try {
      const image = await this.images.get(this.frames.at(target).pts);
      if (this.targetIndex !== target) return;
      this.images.shown = image;
      this.show(image, target, true);
      this.emit("loading", false);
      this.prefetch(target, step);
    } catch (error) {
      if (this.targetIndex !== target) return;
      this.emit("loading", false);
      this.emit("error", error instanceof Error ? error.message : "The frame could not be read.");
    }
  }

  step(by: number): Promise<void> {
    return this.seek((this.targetIndex < 0 ? 0 : this.targetIndex) + by);
  }

  async toggle(): Promise<void> {
    await (this.isPlaying ? this.pause() : this.play());
  }

  async play(): Promise<void> {
    try {
      if (!(await this.playback.start(this.index)) || this.isPlaying) return;
    } catch {
      return this.handleMediaError();
    }
    this.isPlaying = true;
    this.emit("loading", false); // a frame requested before is no longer needed
    this.emit("playing", true);
  }

  async pause(): Promise<void> {
    if (!this.isPlaying) return;
    await this.seek(this.index);
  }

  /** Stop and release the recording, when the image is left. */
  close(): void {
    this.stopMedia();
    this.images.prefetch([]);
    this.media.removeAttribute("src");
    this.media.load(); // ends the download
  }

  /** First and last frame of the loop; null plays once to the end. */
  set loop(span: [number, number] | null) {
    this.playback.loop = span;
  }

  get speed(): number {
    return this.media.playbackRate;
  }

  setSpeed(speed: number): void {
    this.media.defaultPlaybackRate = this.media.playbackRate = speed;
    this.emit("speed", speed);
  }

  /** Change to the next speed, `by` 1 faster or -1 slower; the extremes stay. */
  changeSpeed(by: number): void {
    const at = SPEEDS.findIndex((speed) => speed >= this.speed);
    this.setSpeed(SPEEDS[Math.min(Math.max(at + by, 0), SPEEDS.length - 1)] ?? 1);
  }

  private handleMediaEnd(): void {
    if (!this.playback.repeat()) void this.pause();
  }

  /** Stop the media element, also if it is about to play. */
  private stopMedia(): void {
    this.playback.stop();
    if (!this.isPlaying) return;
    this.isPlaying = false;
    this.emit("playing", false);
  }

  private handleMediaError(): void {
    if (!this.media.hasAttribute("src")) return; // closed
    this.stopMedia();
    this.emit("error", "This video cannot be played here; stepping through its frames still works.");
  }

  /** Copy of the current media frame; at the end of a looped span the element runs past the last frame. */
  private captureStill(): HTMLCanvasElement {
    this.stillSurface.width = this.media.videoWidth;
    this.stillSurface.height = this.media.videoHeight;
    this.stillSurface.getContext("2d")?.drawImage(this.media, 0, 0);
    return this.stillSurface;
  }

  private show(image: CanvasImageSource, index: number, exact: boolean): void {
    const isNew = index !== this.index || exact;
    this.index = index;
    if (!exact) this.targetIndex = index;
    const { width, height } = this.canvas;
    this.picture.show({ image, width, height });
    if (isNew) this.emit("frame", { frame: this.frames.at(index), exact });
  }

  private prefetch(index: number, step: number): void {
    const stride = Math.abs(step) > JUMP ? 1 : step; // a longer step is a jump: its neighbours are needed next
    const next = prefetchOrder(index, stride, this.frames.length, this.images.capacity);
    this.images.prefetch(next.map((at) => this.frames.at(at).pts));
  }
}
