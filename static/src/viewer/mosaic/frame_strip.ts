/** The frames of a mosaic's video in order of time: a strip to drag along; the outline follows on the map. */

import { required } from "../../dom/elements";
import { Emitter } from "../lib/events";
import type { FrameStatus } from "../video/frame_status";
import { slider, trackContext } from "../lib/slider";
import { timeText } from "../lib/units";

interface StripEvents {
  /** Another frame; `row` in the columns. */
  frame: { row: number; pts: number };
}

export class MosaicStrip extends Emitter<StripEvents> {
  row = -1;
  private readonly host: HTMLElement;
  private readonly track: HTMLElement;

  constructor(
    root: HTMLElement,
    private readonly frameStatus: FrameStatus,
    private readonly component: number,
    private readonly videoHref: (pts: number) => string,
  ) {
    super();
    this.host = required(root, "[data-strip]");
    this.track = required(this.host, "[role=slider]");
    this.host.hidden = false;
    for (const button of this.host.querySelectorAll<HTMLButtonElement>("[data-strip-step]")) {
      button.addEventListener("click", () => this.step(Number(button.dataset.stripStep)));
    }
    this.track.setAttribute("aria-valuemax", String(Math.max(frameStatus.count - 1, 0)));
    required(this.host, "[data-strip-legend]").replaceChildren(...frameStatus.legend());
    new ResizeObserver(() => this.draw()).observe(this.track);
    slider(this.track, {
      at: () => this.row,
      last: () => frameStatus.count - 1,
      seek: (row) => this.seek(row),
      drag: (share) => this.seek(share * frameStatus.count - 0.5), // a frame has a width here, and its middle
    });
  }

  get pts(): number | null {
    return this.row < 0 ? null : (this.frameStatus.columns.pts[this.row] ?? null);
  }

  step(by: number): void {
    this.seek(this.row < 0 ? 0 : this.row + by);
  }

  seekPts(pts: number): void {
    const row = this.frameStatus.rowOf(pts);
    if (row !== null) this.seek(row);
  }

  seek(row: number): void {
    const { count, columns } = this.frameStatus;
    if (count === 0) return;
    this.row = Math.min(Math.max(Math.round(row), 0), count - 1);
    const pts = columns.pts[this.row] ?? 0;
    this.show(pts);
    this.emit("frame", { row: this.row, pts });
  }

  private show(pts: number): void {
    const { columns, count } = this.frameStatus;
    const index = (columns.index[this.row] ?? 0) + 1;
    const reason = this.frameStatus.reason(this.row);
    const time = timeText(pts * columns.time_base_s);
    const component = this.frameStatus.component(this.row);
    const place = component === null || component === this.component ? "in the mosaic" : `in component ${component + 1}`;
    const status = reason?.code === "" ? place : `not in it: ${reason?.name ?? "unknown"}`;
    const head = required(this.host, "[data-timeline-head]");
    head.hidden = false;
    head.style.left = `${(100 * (this.row + 0.5)) / Math.max(count, 1)}%`;
    required(this.host, "[data-frame-index]").textContent = `Frame ${index}`;
    required(this.host, "[data-frame-time]").textContent = `${time} · ${status}`;
    const video = required<HTMLAnchorElement>(this.host, "[data-strip-video]");
    video.href = this.videoHref(pts);
    video.hidden = false;
    this.track.setAttribute("aria-valuenow", String(this.row));
    this.track.setAttribute("aria-valuetext", `Frame ${index}, ${time}, ${status}`);
  }

  private draw(): void {
    const canvas = required<HTMLCanvasElement>(this.host, "canvas");
    const context = trackContext(canvas, this.track);
    if (!context) return;
    this.frameStatus.paint(context, 0, canvas.height, (row) => (canvas.width * row) / Math.max(this.frameStatus.count, 1));
  }
}
