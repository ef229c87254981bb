/** What the server says of canvases, ROIs and labels (see docs/api.md). */

export type Position = [number, number];
export interface PolygonGeometry {
  type: "Polygon";
  coordinates: Position[][];
}
export interface MultiPolygonGeometry {
  type: "MultiPolygon";
  coordinates: Position[][][];
}
/** GeoJSON in level-0 pixels, x right, y down. */
export type RoiGeometry = PolygonGeometry | MultiPolygonGeometry;

/** An ellipse fills its bounds. */
export type RoiShape = "polygon" | "ellipse";

export interface Level {
  width: number;
  height: number;
  /** Level-0 pixels per pixel of this level. */
  downsample: number;
  tile_width: number;
  tile_height: number;
}

export interface CanvasVideo {
  id: string;
  /** The first page of its frames. */
  frames_url: string;
  /** Holds `{pts}`. */
  frame_url: string;
  media_url: string;
  /** A frame's time minus this is its time on the clock of the media element. */
  media_offset_s: number;
  frame_count: number;
  duration_s: number;
  fps: number;
  time_base_s: number;
}

export interface CanvasData {
  id: string;
  kind: "slide" | "still" | "video" | "mosaic";
  name: string;
  case: { id: string; accession: string };
  width: number;
  height: number;
  mpp_x: number | null;
  mpp_y: number | null;
  /** Finest first. */
  levels: Level[];
  /** Holds `{z}` (0 is the coarsest), `{x}`, `{y}`; null for a video. */
  tile_url: string | null;
  thumbnail_url: string | null;
  video: CanvasVideo | null;
  can_annotate: boolean;
}

export interface FrameRef {
  index: number;
  pts: number;
  time_s: number;
}

export interface Roi {
  id: string;
  canvas: string;
  frame: FrameRef | null;
  geometry: RoiGeometry;
  label: string | null;
  name: string;
  shape: RoiShape;
  locked: boolean;
  review_state: string;
  version: number;
  area_px: number;
  area_um2: number | null;
  bounds: [number, number, number, number];
  /** A name; null where the account is gone. */
  created_by: string | null;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
  is_embedded: boolean;
  /** What this write did to the outline: repaired, clipped. */
  notes: string[];
}

export interface RoiRevision {
  version: number;
  action: string;
  geometry: RoiGeometry;
  label: string | null;
  name: string;
  shape: RoiShape;
  locked: boolean;
  review_state: string;
  /** A name; null where the account is gone. */
  author: string | null;
  created_at: string;
}

export interface Label {
  id: string;
  name: string;
  color: string;
  position: number;
}
