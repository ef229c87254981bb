/** Mosaic parts of the viewer: frames at a point, frame strip, data layers. */

import type Projection from "ol/proj/Projection";

import type { LinkTarget } from "../map/deep_link";
import { required } from "../../dom/elements";
import { FrameStatus } from "../video/frame_status";
import type { KeyGroup } from "../lib/key_bindings";
import type { Labels } from "../rois/store/labels";
import type { MapView } from "../map/map_view";
import { frameColumns, mosaicOfCanvas, projectedOnComponent } from "./api";
import type { MosaicData, ProjectedRoi } from "./api";
import { MosaicDataLayers } from "./data_layers";
import { MosaicOverlay } from "./overlay";
import { MosaicStrip } from "./frame_strip";
import { PanelTabs } from "../lib/panel_tabs";
import { ProjectedLayer, projectedHref, projectedText } from "./projected_layer";
import type { RoiLayer } from "../rois/rendering/roi_layer";
import type { RoiState } from "../rois/store/roi_state";
import { FramesAtPoint } from "./frames_at_point";
import type { StageNotice } from "../lib/stage_notice";
import type { Tools } from "../rois/tools/tools";
import type { CanvasData } from "../lib/types";

export interface MosaicTargets {
  root: HTMLElement;
  canvas: CanvasData;
  projection: Projection;
  mapView: MapView;
  tools: Tools;
  notice: StageNotice;
  labels: Labels;
  layer: RoiLayer;
}

/** Key bindings exist before the data is loaded; until then they do nothing. */
export class MosaicView {
  private strip: MosaicStrip | null = null;
  private layers: MosaicDataLayers | null = null;
  private readonly tabs: PanelTabs;
  private readonly overlay = new MosaicOverlay();

  constructor(private readonly targets: MosaicTargets) {
    this.tabs = new PanelTabs(required(targets.root, "[data-panel-tabs]"));
  }

  get pts(): number | null {
    return this.strip?.pts ?? null;
  }

  keys(): KeyGroup {
    const { tools } = this.targets;
    const step = (by: number) => () => this.strip?.step(by);
    return {
      title: "Mosaic",
      bindings: [
        { keys: ["shift+w"], display: "Shift + W", does: "Which frames saw a point", run: () => tools.use("frames") },
        { keys: ["t"], display: "T", does: "Next layer", run: () => this.nextLayer() },
        { keys: ["d"], display: "D", does: "One frame back", run: step(-1), repeats: true },
        { keys: ["f"], display: "F", does: "One frame on", run: step(1), repeats: true },
        { keys: ["c"], display: "C", does: "Ten frames back", run: step(-10), repeats: true },
        { keys: ["v"], display: "V", does: "Ten frames on", run: step(10), repeats: true },
      ],
    };
  }

  async load(link: LinkTarget, onFrame: () => void): Promise<void> {
    const { root, canvas, projection, mapView, notice } = this.targets;
    const mosaic = await mosaicOfCanvas(canvas.id).catch(() => null);
    const component = mosaic?.components.find((found) => found.canvas === canvas.id);
    if (!mosaic || !component) {
      notice.show("The frames of this mosaic could not be loaded.");
      return;
    }
    this.layers = new MosaicDataLayers(root, component, projection, (text) => notice.show(text));
    const { map } = mapView;
    const beneath = map.getLayers().getLength() - 1; // the ROIs stay on top
    map.getLayers().insertAt(beneath, this.layers.layer);
    map.getLayers().insertAt(beneath + 1, this.overlay.layer);
    this.layers.followPointer(map);
    const frameStatus = new FrameStatus(await frameColumns(mosaic.id));
    this.strip = new MosaicStrip(root, frameStatus, component.index, (pts) => `/canvases/${mosaic.video_canvas}/?t=${pts}`);
    this.connect(mosaic, component.index, frameStatus, this.strip, onFrame);
    if (link.t !== null) this.strip.seekPts(link.t);
  }

  private connect(mosaic: MosaicData, component: number, frameStatus: FrameStatus, strip: MosaicStrip, onFrame: () => void): void {
    const { root, tools } = this.targets;
    const projected = this.addProjectedLayer(mosaic, component);
    const actions = { open: () => this.tabs.open("panel-frames"), choose: (pts: number) => strip.seekPts(pts) };
    const framesAtPoint = new FramesAtPoint(root, mosaic, component, this.overlay, actions);
    tools.on("point", ({ at, isFramesTool }) => {
      const roi = isFramesTool ? null : projected.at(at, this.targets.mapView.view.getResolution() ?? 1);
      if (roi) this.showNotice(roi);
      else if (isFramesTool || this.tabs.current === "panel-frames") void framesAtPoint.ask(at);
    });
    this.connectRois(framesAtPoint);
    tools.on("tool", (tool) => {
      if (tool === "frames") this.tabs.open("panel-frames");
    });
    strip.on("frame", ({ row }) => {
      const isHere = frameStatus.component(row) === component;
      this.overlay.showHead(isHere ? frameStatus.outline(row) : null);
      onFrame();
    });
  }

  /** Add the ROIs of the video's frames, dashed, and a note about them to the list of ROIs. */
  private addProjectedLayer(mosaic: MosaicData, component: number): ProjectedLayer {
    const { root, labels, mapView, layer } = this.targets;
    const projected = new ProjectedLayer(labels);
    const layers = mapView.map.getLayers();
    layers.insertAt(layers.getLength() - 1, projected.layer);
    layer.on("display", ({ visible }) => projected.layer.setVisible(visible));
    void projectedOnComponent(mosaic.id, component)
      .then((rois) => {
        projected.show(rois);
        const note = required(root, "[data-roi-projected]");
        note.hidden = rois.length === 0;
        const many = rois.length === 1 ? "1 region is" : `${rois.length} regions are`;
        note.textContent = `${many} projected from frames of the video (dashed). Click one to go there.`;
      })
      .catch(() => undefined);
    return projected;
  }

  private showNotice(roi: ProjectedRoi): void {
    const { notice, labels } = this.targets;
    notice.show(projectedText(roi, labels), { label: "Go there", run: () => location.assign(projectedHref(roi)) });
  }

  /** Show the frames that see an ROI, from its details. */
  private connectRois(framesAtPoint: FramesAtPoint): void {
    const { root, layer } = this.targets;
    const button = required<HTMLButtonElement>(root, "[data-roi-frames]");
    let chosen: RoiState | null = null;
    layer.on("select", (state) => {
      if (state && state !== chosen) this.tabs.open("panel-rois");
      chosen = state;
      button.disabled = !state?.server;
    });
    button.addEventListener("click", () => {
      if (chosen) void framesAtPoint.askRoi(chosen.id, chosen.name || "this region");
    });
  }

  private nextLayer(): void {
    this.tabs.open("panel-layers");
    this.layers?.next();
  }
}
