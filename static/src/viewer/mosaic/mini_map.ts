/** Beside a video: its mosaic, small. The outline of the frame shown moves over it; a click goes to the frame that saw that place best. */

import { required, element } from "../../dom/elements";
import { Emitter } from "../lib/events";
import { FrameFates } from "../video/frame_columns";
import { frameColumns, framesAt, mosaicsOfVideo } from "./api";
import type { MosaicData, MosaicPartData } from "./api";
import type { Toasts } from "../lib/toasts";
import type { CanvasVideo, FrameRef, Position } from "../lib/types";
import type { VideoPlayer } from "../video/player";

const LONGEST_PX = 256;
const FOLDED_KEY = "tessera-mini-map";

interface MapEvents {
  /** Another mosaic was chosen: its frames colour the timeline. */
  fates: { mosaic: MosaicData; fates: FrameFates };
}

export class MiniMap extends Emitter<MapEvents> {
  private readonly host: HTMLElement;
  private mosaic: MosaicData | null = null;
  private fates: FrameFates | null = null;
  private part: MosaicPartData | null = null;

  constructor(
    root: HTMLElement,
    private readonly player: VideoPlayer,
    private readonly toasts: Toasts,
  ) {
    super();
    this.host = required(root, "[data-mini-map]");
    required(this.host, "[data-mini-fold]").addEventListener("click", () => this.fold());
    required(this.host, "[data-mini-picture]").addEventListener("click", (event) => void this.goTo(event as MouseEvent));
    player.on("frame", ({ frame }) => this.follow(frame));
  }

  async load(video: CanvasVideo): Promise<void> {
    const mosaics = await mosaicsOfVideo(video.id).catch(() => []);
    if (!mosaics.length) return;
    const choice = required<HTMLSelectElement>(this.host, "[data-mini-choice]");
    choice.replaceChildren(...mosaics.map(({ id, name }) => element("option", { value: id }, name)));
    choice.addEventListener("change", () => {
      const chosen = mosaics.find(({ id }) => id === choice.value);
      if (chosen) void this.show(chosen);
    });
    this.host.hidden = false;
    if (localStorage.getItem(FOLDED_KEY) === "folded") this.fold();
    const first = mosaics[0];
    if (first) await this.show(first);
  }

  fold(): void {
    if (this.host.hidden) return;
    const body = required(this.host, "[data-mini-body]");
    body.hidden = !body.hidden;
    required(this.host, "[data-mini-fold]").setAttribute("aria-expanded", String(!body.hidden));
    localStorage.setItem(FOLDED_KEY, body.hidden ? "folded" : "open");
  }

  private async show(mosaic: MosaicData): Promise<void> {
    try {
      const fates = new FrameFates(await frameColumns(mosaic.id));
      this.mosaic = mosaic;
      this.fates = fates;
      this.part = null;
      this.showPart(mosaic.parts[0] ?? null);
      required(this.host, "[data-mini-legend]").replaceChildren(...fates.legend());
      this.emit("fates", { mosaic, fates });
      if (this.player.frame) this.follow(this.player.frame);
    } catch {
      this.toasts.show("The mosaic of this video could not be loaded.");
    }
  }

  private showPart(part: MosaicPartData | null): void {
    if (!part || part === this.part) return;
    this.part = part;
    const scale = LONGEST_PX / Math.max(part.width, part.height);
    const picture = required(this.host, "[data-mini-picture]");
    picture.style.width = `${Math.round(part.width * scale)}px`;
    picture.style.height = `${Math.round(part.height * scale)}px`;
    required<HTMLImageElement>(this.host, "[data-mini-image]").src = `/api/v1/canvases/${part.canvas}/thumbnail.jpg`;
    required(this.host, "[data-mini-outline]").setAttribute("viewBox", `0 0 ${part.width} ${part.height}`);
  }

  private follow(frame: FrameRef): void {
    const { fates, mosaic } = this;
    if (!fates || !mosaic) return;
    const place = fates.placeOf(frame.pts);
    const part = place === null ? null : fates.part(place);
    if (part !== null) this.showPart(mosaic.parts[part] ?? null);
    const outline = place === null ? null : fates.outline(place);
    const points = (outline ?? []).map(([x, y]) => `${x},${y}`).join(" ");
    for (const polygon of this.host.querySelectorAll("polygon")) polygon.setAttribute("points", points);
    required(this.host, "[data-mini-note]").replaceChildren(...this.note(place));
    const open = required<HTMLAnchorElement>(this.host, "[data-mini-open]");
    open.href = `/canvases/${this.part?.canvas ?? ""}/?t=${frame.pts}`;
  }

  private note(place: number | null): (Node | string)[] {
    const reason = place === null ? null : (this.fates?.reason(place) ?? null);
    if (!reason) return ["This frame is outside the mosaic's span."];
    const dot = element("span", { class: "legend-dot", "aria-hidden": "true" });
    dot.style.backgroundColor = reason.color;
    return [dot, reason.code === "" ? "This frame is in the mosaic." : `This frame is not in it: ${reason.name}.`];
  }

  private async goTo(event: MouseEvent): Promise<void> {
    const { mosaic, part } = this;
    if (!mosaic || !part) return;
    const box = required(this.host, "[data-mini-picture]").getBoundingClientRect();
    const at: Position = [
      Math.min(Math.max(((event.clientX - box.left) / box.width) * part.width, 0), part.width),
      Math.min(Math.max(((event.clientY - box.top) / box.height) * part.height, 0), part.height),
    ];
    try {
      const best = (await framesAt(mosaic.id, part.index, at)).results[0];
      if (best) await this.player.seek(this.player.frames.nearest(best.pts));
      else this.toasts.show("No frame saw that place.");
    } catch (error) {
      this.toasts.show(error instanceof Error ? error.message : "The frames could not be found.");
    }
  }
}
