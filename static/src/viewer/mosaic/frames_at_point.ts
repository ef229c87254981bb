/** The frames that saw a point of a mosaic: a list, the sharpest first, each a way into the video. */

import { element, required } from "../../dom/elements";
import { askFramesAtPoint, roiFrames } from "./api";
import type { MosaicData, RoiInFrame, FrameAtPoint } from "./api";
import type { MosaicOverlay } from "./overlay";
import type { Position } from "../lib/types";
import { timeText } from "../lib/units";

export interface FramesAtPointActions {
  /** Bring the page of frames to the front. */
  open: () => void;
  /** The frame that was chosen: the strip follows. */
  choose: (pts: number) => void;
}

export class FramesAtPoint {
  private readonly list: HTMLElement;
  private readonly note: HTMLElement;
  private request: AbortController | null = null;

  constructor(
    private readonly root: HTMLElement,
    private readonly mosaic: MosaicData,
    private readonly component: number,
    private readonly overlay: MosaicOverlay,
    private readonly actions: FramesAtPointActions,
  ) {
    this.list = required(root, "[data-frames-list]");
    this.note = required(root, "[data-frames-note]");
  }

  /** The frames that saw a point of the mosaic. */
  async ask(at: Position): Promise<void> {
    await this.adjustments(at, "Looking for the frames that saw it…", async (signal) => {
      const { count, results } = await askFramesAtPoint(this.mosaic.id, this.component, at, signal);
      this.show(at, count, results);
    });
  }

  /** The frames that see an ROI of the mosaic, and how much of it. */
  async askRoi(roi: string, name: string): Promise<void> {
    await this.adjustments(null, `Looking for the frames that see ${name}…`, async (signal) => {
      const frames = await roiFrames(this.mosaic.id, roi, signal);
      const share = new Map(frames.map((frame) => [frame, `${Math.round(100 * frame.share)} % of it`]));
      this.fill(frames, frames.length, (frame) => share.get(frame as RoiInFrame) ?? "");
      if (frames.length === 0) this.showText(`No frame sees ${name}.`);
      else this.showText(`${frames.length} ${frames.length === 1 ? "frame sees" : "frames see"} ${name}; it is projected into each, dashed.`);
    });
  }

  /** Open the page of frames and let `answer` fill it; a later request cancels this one. */
  private async adjustments(mark: Position | null, text: string, answer: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    this.overlay.showMark(mark);
    this.overlay.showPointed(null);
    this.actions.open();
    this.showText(text);
    try {
      await answer(request.signal);
    } catch (error) {
      if (request.signal.aborted) return;
      this.list.replaceChildren();
      this.showText(error instanceof Error ? error.message : "The frames could not be found.");
    }
  }

  clear(): void {
    this.request?.abort();
    this.overlay.showMark(null);
    this.overlay.showPointed(null);
    this.list.replaceChildren();
    this.note.hidden = true;
    required(this.root, "[data-frames-count]").textContent = "";
    required(this.root, "[data-frames-empty]").hidden = false;
  }

  private show([x, y]: Position, count: number, found: FrameAtPoint[]): void {
    this.fill(found, count, () => "");
    const where = `at ${Math.round(x)}, ${Math.round(y)} px`;
    if (count === 0) this.showText(`No frame saw the point ${where}.`);
    else if (count > found.length) this.showText(`${count} frames saw the point ${where}; the ${found.length} sharpest:`);
    else this.showText(`${count} ${count === 1 ? "frame" : "frames"} saw the point ${where}, the sharpest first.`);
  }

  private fill(found: FrameAtPoint[], count: number, textOf: (frame: FrameAtPoint) => string): void {
    required(this.root, "[data-frames-count]").textContent = String(count);
    const sharpest = Math.max(...found.map((frame) => frame.sharpness ?? 0), 1e-12);
    this.list.replaceChildren(...found.map((frame) => this.row(frame, sharpest, textOf(frame))));
    this.list.scrollTop = 0;
  }

  private row(frame: FrameAtPoint, sharpest: number, says: string): HTMLElement {
    const facts: string[] = [];
    if (says) facts.push(says);
    if (frame.sharpness !== null) facts.push(`sharpness ${Math.round((100 * frame.sharpness) / sharpest)} %`);
    const sure = frame.uncertainty_px === null ? "" : ` · ± ${frame.uncertainty_px.toFixed(2)} px`;
    const point = (): void => this.overlay.showPointed(frame.outline);
    const leave = (): void => this.overlay.showPointed(null);
    const picture = element("span", { class: "frame-at-point-picture" }, this.picture(frame));
    picture.style.aspectRatio = `${this.mosaic.frame_width} / ${this.mosaic.frame_height}`;
    const choose = element(
      "button",
      {
        type: "button",
        class: "frame-at-point-choose",
        "aria-label": `Show the outline of frame ${frame.index + 1}`,
        click: () => this.actions.choose(frame.pts),
        focus: point,
        blur: leave,
      },
      picture,
      element("span", { class: "frame-at-point-title" }, timeText(frame.time_s)),
      element("span", { class: "frame-at-point-facts" }, `Frame ${frame.index + 1}${sure}`),
      element("span", { class: "frame-at-point-facts" }, facts.join(" · ")),
    );
    const jump = element("a", { class: "btn btn--small", href: frame.viewer_url, title: "Open the video at this frame" }, "Video");
    return element("li", { class: "frame-at-point", pointerenter: point, pointerleave: leave }, choose, jump);
  }

  /** Thumbnail of a frame with a ring around the point. */
  private picture(frame: FrameAtPoint): Node {
    const image = element("img", { alt: "", loading: "lazy", src: frame.image_url });
    const ring = element("span", { class: "frame-at-point-ring", hidden: true });
    image.addEventListener("load", () => {
      ring.style.left = `${(100 * (frame.xy_frame[0] + 0.5)) / image.naturalWidth}%`;
      ring.style.top = `${(100 * (frame.xy_frame[1] + 0.5)) / image.naturalHeight}%`;
      ring.hidden = false;
    });
    const both = document.createDocumentFragment();
    both.append(image, ring);
    return both;
  }

  private showText(text: string): void {
    required(this.root, "[data-frames-empty]").hidden = true;
    this.note.textContent = text;
    this.note.hidden = false;
  }
}
