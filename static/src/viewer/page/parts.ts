/** What the page is made of, for those who connect it. */

import type Projection from "ol/proj/Projection";

import type { History } from "../lib/history";
import type { Cupboard } from "../lib/shelf";
import type { StageNotice } from "../lib/stage_notice";
import type { CanvasData } from "../lib/types";
import type { CanvasLayers } from "../map/canvas_layer";
import type { MapView } from "../map/map_view";
import type { Drafts } from "../rois/saved/drafts";
import type { RoiEdits } from "../rois/saved/edits";
import type { Labels } from "../rois/saved/labels";
import type { RoiLayer } from "../rois/shown/layer";
import type { PropertyType } from "../rois/saved/property_types";
import type { RoiStore } from "../rois/saved/store";
import type { VideoPlayer } from "../video/player";
import type { MiniMap } from "../mosaic/mini_map";
import type { MosaicView } from "../mosaic/view";

export interface Parts {
  root: HTMLElement;
  canvas: CanvasData;
  labels: Labels;
  propertyTypes: PropertyType[];
  player: VideoPlayer | null;
  /** The image where it has tiles. */
  image: CanvasLayers | null;
  history: History;
  /** What waits on this computer. */
  cupboard: Cupboard;
  drafts: Drafts;
  store: RoiStore;
  edits: RoiEdits;
  layer: RoiLayer;
  mapView: MapView;
  notice: StageNotice;
  projection: Projection;
  /** Set by `connectTools` on a mosaic. */
  mosaic: MosaicView | null;
  /** Set by `connectTools` on a video. */
  miniMap: MiniMap | null;
}
