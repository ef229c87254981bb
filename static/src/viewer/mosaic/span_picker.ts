/** A span of the video, to play over and over or for a mosaic: set at its ends with Shift + I and Shift + O, shown on the timeline. */

import { required } from "../../dom/elements";
import { estimate, mosaicBuild } from "./api";
import type { Span } from "./api";
import { SpanEnds, estimateText } from "./span_ends";
import type { StageNotice } from "../lib/stage_notice";
import type { CanvasVideo } from "../lib/types";
import { ClipButton } from "../video/clip";
import type { ClipSpan } from "../video/clip";
import type { VideoPlayer } from "../video/player";

export class SpanPicker {
  private readonly ends = new SpanEnds();
  private isLooping = false;
  private request: AbortController | null = null;

  constructor(
    private readonly root: HTMLElement,
    private readonly player: VideoPlayer,
    private readonly video: CanvasVideo,
    private readonly notice: StageNotice,
    leaving: AbortSignal,
  ) {
    const bar = required(root, "[data-span-bar]");
    bar.addEventListener("keydown", (event) => event.stopPropagation());
    required(root, "[data-span-clear]").addEventListener("click", () => this.clear());
    required(root, "[data-span-loop]").addEventListener("click", () => this.toggleLoop());
    const clip = root.querySelector<HTMLButtonElement>("[data-span-clip]");
    const clipStatus = required(root, "[data-span-clip-status]");
    if (clip) new ClipButton(clip, clipStatus, video.id, () => this.clipSpan(), leaving);
    root.querySelector("[data-span-build]")?.addEventListener("click", () => void this.build());
  }

  /** Shift + I: the span begins at the frame shown. */
  begin(): void {
    this.ends.begin(this.player.index);
    this.show();
  }

  /** Shift + O: it ends there. */
  end(): void {
    this.ends.end(this.player.index);
    this.show();
  }

  clear(): void {
    this.ends.clear();
    this.isLooping = false;
    this.show();
  }

  /** I: play the span over and over, or the whole video again. */
  toggleLoop(): void {
    if (!this.ends.isSet) {
      this.notice.show("Set a span first: Shift + I where it begins, Shift + O where it ends.");
      return;
    }
    this.isLooping = !this.isLooping;
    this.show();
    if (this.isLooping) void this.player.play();
  }

  private span(): Span {
    const { frames } = this.player;
    const [from, to] = this.ends.indexRange(frames.length);
    const round = (seconds: number): number => Math.round(seconds * 1000) / 1000;
    return { start_s: round(frames.at(from).time_s), end_s: round(frames.at(to).time_s) };
  }

  private clipSpan(): ClipSpan | null {
    if (!this.ends.isSet) return null;
    const [first, last] = this.ends.indexRange(this.player.frames.length);
    return { first, last };
  }

  private show(): void {
    required(this.root, "[data-span-clip-status]").textContent = "";
    const { isSet } = this.ends;
    this.carry(isSet ? this.span() : null);
    this.player.loop = isSet && this.isLooping ? this.ends.indexRange(this.player.frames.length) : null;
    required(this.root, "[data-span-loop]").setAttribute("aria-pressed", String(this.isLooping));
    const band = required(this.root, "[data-span-band]");
    band.hidden = required(this.root, "[data-span-bar]").hidden = !isSet;
    if (!isSet) return;
    const [from, to] = this.ends.indexRange(this.player.frames.length);
    const last = Math.max(this.player.frames.length - 1, 1);
    band.style.left = `${(100 * from) / last}%`;
    band.style.right = `${100 - (100 * to) / last}%`;
    const { start_s, end_s } = this.span();
    required(this.root, "[data-span-text]").textContent = `${start_s.toFixed(2)} s to ${end_s.toFixed(2)} s`;
    const build = this.root.querySelector<HTMLButtonElement>("[data-span-build]");
    if (build) void this.estimate(build);
  }

  /** The header's links and form for mosaics begin with the span. */
  private carry(span: Span | null): void {
    for (const link of this.root.querySelectorAll<HTMLAnchorElement>("a[data-span-link]")) {
      const url = new URL(link.href);
      for (const name of ["start_s", "end_s"] as const) {
        if (span) url.searchParams.set(name, String(span[name]));
        else url.searchParams.delete(name);
      }
      link.href = url.href;
    }
    for (const input of this.root.querySelectorAll<HTMLInputElement>("[data-span-form] input[type=hidden]")) {
      if (input.name === "start_s" || input.name === "end_s") input.value = span ? String(span[input.name]) : "";
    }
  }

  private async estimate(build: HTMLButtonElement): Promise<void> {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    const host = required(this.root, "[data-span-estimate]");
    try {
      const { used, seconds } = await estimate(this.video.id, this.span(), request.signal);
      host.textContent = estimateText(used, seconds);
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
      this.notice.show(error instanceof Error ? error.message : "The mosaic could not be requested.");
    }
  }
}
