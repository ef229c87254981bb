/** The frames of a mosaic's video in order of time: a strip to drag along; the outline follows on the map. */

import { required } from "../../dom/elements";
import { Emitter } from "../lib/events";
import type { FrameFates } from "../video/frame_columns";
import { slider, trackContext } from "../lib/slider";
import { timeText } from "../lib/units";

interface StripEvents {
  /** Another frame; `place` in the columns. */
  frame: { place: number; pts: number };
}

export class MosaicStrip extends Emitter<StripEvents> {
  place = -1;
  private readonly host: HTMLElement;
  private readonly track: HTMLElement;

  constructor(
    root: HTMLElement,
    private readonly fates: FrameFates,
    private readonly part: number,
    private readonly videoHref: (pts: number) => string,
  ) {
    super();
    this.host = required(root, "[data-strip]");
    this.track = required(this.host, "[role=slider]");
    this.host.hidden = false;
    for (const button of this.host.querySelectorAll<HTMLButtonElement>("[data-strip-step]")) {
      button.addEventListener("click", () => this.step(Number(button.dataset.stripStep)));
    }
    this.track.setAttribute("aria-valuemax", String(Math.max(fates.count - 1, 0)));
    required(this.host, "[data-strip-legend]").replaceChildren(...fates.legend());
    new ResizeObserver(() => this.draw()).observe(this.track);
    slider(this.track, {
      at: () => this.place,
      last: () => fates.count - 1,
      seek: (place) => this.seek(place),
      drag: (share) => this.seek(share * fates.count - 0.5), // a frame has a width here, and its middle
    });
  }

  get pts(): number | null {
    return this.place < 0 ? null : (this.fates.columns.pts[this.place] ?? null);
  }

  step(by: number): void {
    this.seek(this.place < 0 ? 0 : this.place + by);
  }

  seekPts(pts: number): void {
    const place = this.fates.placeOf(pts);
    if (place !== null) this.seek(place);
  }

  seek(wanted: number): void {
    const { count, columns } = this.fates;
    if (count === 0) return;
    this.place = Math.min(Math.max(Math.round(wanted), 0), count - 1);
    const pts = columns.pts[this.place] ?? 0;
    this.show(pts);
    this.emit("frame", { place: this.place, pts });
  }

  private show(pts: number): void {
    const { columns, count } = this.fates;
    const index = (columns.index[this.place] ?? 0) + 1;
    const reason = this.fates.reason(this.place);
    const time = timeText(pts * columns.time_base_s);
    const part = this.fates.part(this.place);
    const where = part === null || part === this.part ? "in the mosaic" : `in part ${part + 1}`;
    const fate = reason?.code === "" ? where : `not in it: ${reason?.name ?? "unknown"}`;
    const head = required(this.host, "[data-timeline-head]");
    head.hidden = false;
    head.style.left = `${(100 * (this.place + 0.5)) / Math.max(count, 1)}%`;
    required(this.host, "[data-frame-index]").textContent = `Frame ${index}`;
    required(this.host, "[data-frame-time]").textContent = `${time} · ${fate}`;
    const video = required<HTMLAnchorElement>(this.host, "[data-strip-video]");
    video.href = this.videoHref(pts);
    video.hidden = false;
    this.track.setAttribute("aria-valuenow", String(this.place));
    this.track.setAttribute("aria-valuetext", `Frame ${index}, ${time}, ${fate}`);
  }

  private draw(): void {
    const canvas = required<HTMLCanvasElement>(this.host, "canvas");
    const context = trackContext(canvas, this.track);
    if (!context) return;
    this.fates.paint(context, 0, canvas.height, (place) => (canvas.width * place) / Math.max(this.fates.count, 1));
  }
}
