/** Map of a video's mosaic in the panel: the outline of the current frame moves over it; a click seeks the best frame of that place. */

import { required, element } from "../../dom/elements";
import { Emitter } from "../lib/events";
import { FrameStatus } from "../video/frame_status";
import { frameColumns, mosaicsOfVideo } from "./api";
import type { MosaicData, MosaicComponentData } from "./api";
import { showBestFrame } from "./best_frame";
import type { PanelTabs } from "../lib/panel_tabs";
import type { RoiLayer } from "../rois/rendering/roi_layer";
import type { StageNotice } from "../lib/stage_notice";
import type { CanvasVideo, FrameRef, Position } from "../lib/types";
import type { VideoPlayer } from "../video/player";

/** The longer side of the map: as wide as the panel. */
const LONGEST_PX = 288;
const [REGIONS, MAP] = ["panel-rois", "panel-map"];
/** Storage key of the page that was opened last. */
const PAGE_KEY = "tessera-video-panel";

interface MapEvents {
  /** Another mosaic was chosen: its frames colour the timeline. */
  frameStatus: { mosaic: MosaicData; frameStatus: FrameStatus };
}

export class MiniMap extends Emitter<MapEvents> {
  private readonly host: HTMLElement;
  private readonly tab: HTMLElement;
  private mosaic: MosaicData | null = null;
  private frameStatus: FrameStatus | null = null;
  private component: MosaicComponentData | null = null;

  constructor(
    root: HTMLElement,
    private readonly player: VideoPlayer,
    private readonly notice: StageNotice,
    private readonly layer: RoiLayer,
    private readonly tabs: PanelTabs,
  ) {
    super();
    this.host = required(root, "[data-mini-map]");
    this.tab = required(root, "[data-map-tab]");
    required(root, "[data-panel-tabs]").addEventListener("click", () => localStorage.setItem(PAGE_KEY, tabs.current));
    let selectedId: string | null = null;
    layer.on("select", (state) => {
      if (state && state.id !== selectedId) this.tabs.open(REGIONS);
      selectedId = state?.id ?? null;
    });
    required(this.host, "[data-mini-picture]").addEventListener("click", (event) => this.goTo(event as MouseEvent));
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
    this.tab.hidden = false;
    if (!this.layer.selectedId && (localStorage.getItem(PAGE_KEY) ?? MAP) === MAP) this.tabs.open(MAP);
    const first = mosaics[0];
    if (first) await this.show(first);
  }

  /** G: from the regions to the map, and back. */
  toggle(): void {
    if (this.tab.hidden) return;
    this.tabs.open(this.tabs.current === MAP ? REGIONS : MAP);
    localStorage.setItem(PAGE_KEY, this.tabs.current);
  }

  private async show(mosaic: MosaicData): Promise<void> {
    try {
      const frameStatus = new FrameStatus(await frameColumns(mosaic.id));
      this.mosaic = mosaic;
      this.frameStatus = frameStatus;
      this.component = null;
      this.showComponent(mosaic.components[0] ?? null);
      required(this.host, "[data-mini-legend]").replaceChildren(...frameStatus.legend());
      this.emit("frameStatus", { mosaic, frameStatus });
      if (this.player.frame) this.follow(this.player.frame);
    } catch {
      this.notice.show("The mosaic of this video could not be loaded.");
    }
  }

  private showComponent(component: MosaicComponentData | null): void {
    if (!component || component === this.component) return;
    this.component = component;
    const scale = LONGEST_PX / Math.max(component.width, component.height);
    const picture = required(this.host, "[data-mini-picture]");
    picture.style.width = `${Math.round(component.width * scale)}px`;
    picture.style.aspectRatio = `${component.width} / ${component.height}`;
    required<HTMLImageElement>(this.host, "[data-mini-image]").src = `/api/v1/canvases/${component.canvas}/thumbnail.jpg`;
    required(this.host, "[data-mini-outline]").setAttribute("viewBox", `0 0 ${component.width} ${component.height}`);
  }

  private follow(frame: FrameRef): void {
    const { frameStatus, mosaic } = this;
    if (!frameStatus || !mosaic) return;
    const row = frameStatus.rowOf(frame.pts);
    const component = row === null ? null : frameStatus.component(row);
    if (component !== null) this.showComponent(mosaic.components[component] ?? null);
    const outline = row === null ? null : frameStatus.outline(row);
    const points = (outline ?? []).map(([x, y]) => `${x},${y}`).join(" ");
    for (const polygon of this.host.querySelectorAll("polygon")) polygon.setAttribute("points", points);
    required(this.host, "[data-mini-note]").replaceChildren(...this.note(row));
    const open = required<HTMLAnchorElement>(this.host, "[data-mini-open]");
    open.href = `/canvases/${this.component?.canvas ?? ""}/?t=${frame.pts}`;
    const compare = required<HTMLAnchorElement>(this.host, "[data-mini-compare]");
    compare.href = `/canvases/${mosaic.video_canvas}/compare/?with=${this.component?.canvas ?? ""}&t=${frame.pts}&t=`;
  }

  private note(row: number | null): (Node | string)[] {
    const reason = row === null ? null : (this.frameStatus?.reason(row) ?? null);
    if (!reason) return ["This frame is outside the mosaic's span."];
    const dot = element("span", { class: "legend-dot", "aria-hidden": "true" });
    dot.style.backgroundColor = reason.color;
    return [dot, reason.code === "" ? "This frame is in the mosaic." : `This frame is not in it: ${reason.name}.`];
  }

  private goTo(event: MouseEvent): void {
    const { mosaic, component } = this;
    if (!mosaic || !component) return;
    const box = required(this.host, "[data-mini-picture]").getBoundingClientRect();
    const at: Position = [
      Math.min(Math.max(((event.clientX - box.left) / box.width) * component.width, 0), component.width),
      Math.min(Math.max(((event.clientY - box.top) / box.height) * component.height, 0), component.height),
    ];
    void showBestFrame(this.player, this.notice, mosaic.id, component.index, at);
  }
}
