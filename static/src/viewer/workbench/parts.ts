/** Parts of the viewer page. */

import type Projection from "ol/proj/Projection";

import type { History } from "../lib/history";
import type { DraftStorage } from "../lib/draft_storage";
import type { StageNotice } from "../lib/stage_notice";
import type { CanvasData } from "../lib/types";
import type { CanvasLayers } from "../map/tile_layers";
import type { MapView } from "../map/map_view";
import type { SaveQueues } from "../lib/saving/autosave";
import type { Drafts } from "../lib/saving/drafts";
import type { RoiEdits } from "../rois/store/edits";
import type { Labels } from "../rois/store/labels";
import type { RoiLayer } from "../rois/rendering/roi_layer";
import type { PropertyType } from "../rois/store/property_types";
import type { StoredEdit } from "../rois/store/roi_state";
import type { RoiStore } from "../rois/store/roi_store";
import type { StoredEvent } from "../video/events/event_state";
import type { VideoEventEdits, VideoEventStore } from "../video/events/event_store";
import type { VideoEventPanel } from "../video/events/event_panel";
import type { VideoPlayer } from "../video/player";
import type { MiniMap } from "../mosaic/mini_map";
import type { MosaicView } from "../mosaic/mosaic_view";
import type { Jumps } from "./jumps";

/** The events of a video. */
export interface VideoEvents {
  store: VideoEventStore;
  edits: VideoEventEdits;
  drafts: Drafts<StoredEvent>;
}

export interface Parts {
  root: HTMLElement;
  /** Aborted when the image is left: listeners of the window and timers end. */
  leaving: AbortSignal;
  canvas: CanvasData;
  labels: Labels;
  propertyTypes: PropertyType[];
  player: VideoPlayer | null;
  /** The image where it has tiles. */
  image: CanvasLayers | null;
  history: History;
  /** Unsaved changes stored in the browser. */
  draftStorage: DraftStorage;
  drafts: Drafts<StoredEdit>;
  store: RoiStore;
  edits: RoiEdits;
  /** Events of a video; null for other images. */
  events: VideoEvents | null;
  /** Stores whose changes are saved automatically. */
  saving: SaveQueues;
  layer: RoiLayer;
  mapView: MapView;
  notice: StageNotice;
  projection: Projection;
  jumps: Jumps;
  /** Set by `connectTools` on a mosaic. */
  mosaic: MosaicView | null;
  /** Set by `connectTools` on a video. */
  miniMap: MiniMap | null;
  eventPanel: VideoEventPanel | null;
}
