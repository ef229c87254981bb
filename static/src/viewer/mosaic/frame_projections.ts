/** ROIs of a mosaic, drawn dashed on the current frame of its video. */

import type { Labels } from "../rois/store/labels";
import type { MapView } from "../map/map_view";
import type { MiniMap } from "./mini_map";
import { projectedInFrame } from "./api";
import { ProjectedLayer, projectedHref, projectedText } from "./projected_layer";
import type { RoiLayer } from "../rois/rendering/roi_layer";
import type { StageNotice } from "../lib/stage_notice";
import type { Tools } from "../rois/tools/tools";
import type { FrameStatus } from "../video/frame_status";
import type { VideoPlayer } from "../video/player";

export interface ProjectionTargets {
  mapView: MapView;
  labels: Labels;
  layer: RoiLayer;
  notice: StageNotice;
  tools: Tools;
}

export class FrameProjections {
  private readonly projected: ProjectedLayer;
  private mosaic: { id: string; frameStatus: FrameStatus } | null = null;
  private request: AbortController | null = null;

  constructor(
    private readonly player: VideoPlayer,
    map: MiniMap,
    { mapView, labels, layer, notice, tools }: ProjectionTargets,
  ) {
    this.projected = new ProjectedLayer(labels);
    const layers = mapView.map.getLayers();
    layers.insertAt(layers.getLength() - 1, this.projected.layer);
    layer.on("display", ({ visible }) => this.projected.layer.setVisible(visible));
    map.on("frameStatus", ({ mosaic, frameStatus }) => {
      this.mosaic = { id: mosaic.id, frameStatus };
      void this.follow();
    });
    player.on("frame", ({ exact }) => {
      if (exact) void this.follow();
      else this.projected.show([]); // while it plays the frames pass too fast to ask
    });
    tools.on("point", ({ at }) => {
      const roi = this.projected.at(at, mapView.view.getResolution() ?? 1);
      if (!roi) return;
      notice.show(projectedText(roi, labels), { label: "Go there", run: () => location.assign(projectedHref(roi)) });
    });
  }

  private async follow(): Promise<void> {
    const { frame } = this.player;
    this.request?.abort();
    this.projected.show([]);
    if (!this.mosaic || !frame) return;
    if (this.mosaic.frameStatus.rowOf(frame.pts) === null) return; // outside the mosaic's span
    const request = new AbortController();
    this.request = request;
    try {
      const rois = await projectedInFrame(this.mosaic.id, frame.pts, request.signal);
      if (!request.signal.aborted) this.projected.show(rois);
    } catch {
      // another frame was requested, or the server does not answer
    }
  }
}
