/** A span of the video for a mosaic: set at its ends with I and O, shown on the timeline with what it would take. */

import { required } from "../../dom/elements";
import { estimate, mosaicBuild } from "./api";
import type { Span } from "./api";
import type { Toasts } from "../lib/toasts";
import type { CanvasVideo } from "../lib/types";
import type { VideoPlayer } from "../video/player";

export class SpanPicker {
  private from: number | null = null;
  private to: number | null = null;
  private request: AbortController | null = null;

  constructor(
    private readonly root: HTMLElement,
    private readonly player: VideoPlayer,
    private readonly video: CanvasVideo,
    private readonly toasts: Toasts,
  ) {
    const bar = required(root, "[data-span-bar]");
    bar.addEventListener("pointerdown", (event) => event.stopPropagation()); // not a seek
    bar.addEventListener("keydown", (event) => event.stopPropagation());
    required(root, "[data-span-clear]").addEventListener("click", () => this.clear());
    required(root, "[data-span-build]").addEventListener("click", () => void this.build());
  }

  /** I: the span begins at the frame shown. */
  begin(): void {
    this.from = this.player.index;
    if (this.to !== null && this.to <= this.from) this.to = null;
    this.show();
  }

  /** O: it ends there. */
  end(): void {
    this.to = this.player.index;
    if (this.from !== null && this.from >= this.to) this.from = null;
    this.show();
  }

  clear(): void {
    this.from = this.to = null;
    this.show();
  }

  private ends(): [number, number] {
    return [this.from ?? 0, this.to ?? this.player.frames.length - 1];
  }

  private span(): Span {
    const [from, to] = this.ends().map((index) => this.player.frames.at(index).time_s);
    const round = (seconds = 0): number => Math.round(seconds * 1000) / 1000;
    return { start_s: round(from), end_s: round(to) };
  }

  private show(): void {
    const isSet = this.from !== null || this.to !== null;
    const band = required(this.root, "[data-span-band]");
    band.hidden = required(this.root, "[data-span-bar]").hidden = !isSet;
    if (!isSet) return;
    const [from, to] = this.ends();
    const last = Math.max(this.player.frames.length - 1, 1);
    band.style.left = `${(100 * from) / last}%`;
    band.style.right = `${100 - (100 * to) / last}%`;
    const { start_s, end_s } = this.span();
    required(this.root, "[data-span-text]").textContent = `${start_s.toFixed(2)} s to ${end_s.toFixed(2)} s`;
    void this.estimate();
  }

  private async estimate(): Promise<void> {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    const host = required(this.root, "[data-span-estimate]");
    const build = required<HTMLButtonElement>(this.root, "[data-span-build]");
    try {
      const { used, seconds } = await estimate(this.video.id, this.span(), request.signal);
      const time = seconds === null ? "" : `, about ${seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`}`;
      host.textContent = `${used.toLocaleString("en")} frames${time}`;
      build.disabled = false;
    } catch (error) {
      if (request.signal.aborted) return;
      host.textContent = error instanceof Error ? error.message : "";
      build.disabled = true;
    }
  }

  private async build(): Promise<void> {
    try {
      const { id } = await mosaicBuild(this.video.id, this.span());
      location.assign(`/mosaics/${id}/`);
    } catch (error) {
      this.toasts.show(error instanceof Error ? error.message : "The mosaic could not be asked for.");
    }
  }
}
