/** What the server says about canvases, ROIs and labels (see docs/api.md). */

export type Position = [number, number];
export interface PolygonGeometry {
  type: "Polygon";
  coordinates: Position[][];
}
export interface MultiPolygonGeometry {
  type: "MultiPolygon";
  coordinates: Position[][][];
}
export type AreaGeometry = PolygonGeometry | MultiPolygonGeometry;
export interface PointGeometry {
  type: "Point";
  coordinates: Position;
}
export interface MultiPointGeometry {
  type: "MultiPoint";
  coordinates: Position[];
}
export interface LineGeometry {
  type: "LineString";
  coordinates: Position[];
}
export interface MultiLineGeometry {
  type: "MultiLineString";
  coordinates: Position[][];
}
/** What has no area. */
export type MarkGeometry = PointGeometry | MultiPointGeometry | LineGeometry | MultiLineGeometry;
/** GeoJSON in level-0 pixels, x right, y down. */
export type RoiGeometry = AreaGeometry | MarkGeometry;

/** An ellipse fills its bounds; points (one or many) and lines have no area. */
export type RoiShape = "polygon" | "ellipse" | "point" | "line";

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
  /** Small pictures side by side, `filmstrip_count` of them, from the first frame to the last. */
  filmstrip_url: string;
  filmstrip_count: number;
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
  /** Of a slide; empty where nobody knows it. */
  stain: string;
  /** Of more than 8 bits: stored values shown as black and white, and those found in the file. */
  display_range: DisplayRange | null;
  file_display_range: DisplayRange | null;
  can_set_display_range: boolean;
  /** Tiles carry the scanner's colour profile. */
  has_icc_profile: boolean;
  /** Finest first. */
  levels: Level[];
  /** Holds `{z}` (0 is the coarsest), `{x}`, `{y}`; null for a video. */
  tile_url: string | null;
  thumbnail_url: string | null;
  video: CanvasVideo | null;
  can_annotate: boolean;
  can_review: boolean;
  /** The file names no pixel size and this person may set it. */
  can_scale: boolean;
  is_scaled_by_hand: boolean;
}

export interface DisplayRange {
  low: number;
  high: number;
}

export interface FrameRef {
  index: number;
  pts: number;
  time_s: number;
}

/** What an ROI is on one frame of its video. */
export interface KeyFrame {
  index: number;
  pts: number;
  /** Null where it is outside. */
  geometry: RoiGeometry | null;
  shape: RoiShape;
  /** Not there from this frame to the next key frame. */
  outside: boolean;
  by: "hand" | "tracking";
  /** Standard error of a tracked outline. */
  drift_px: number;
}

export type Properties = Record<string, string>;

export interface Roi {
  id: string;
  canvas: string;
  frame: FrameRef | null;
  geometry: RoiGeometry;
  label: string | null;
  name: string;
  description: string;
  /** Texts by key. */
  properties: Properties;
  shape: RoiShape;
  /** Key frames besides its own frame. */
  track: KeyFrame[];
  locked: boolean;
  review_state: string;
  version: number;
  area_px: number;
  area_um2: number | null;
  /** Of a line. */
  length_px: number | null;
  length_um: number | null;
  /** How many points. */
  points: number | null;
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
  /** As the label was called then. */
  label_name?: string;
  version: number;
  action: string;
  geometry: RoiGeometry;
  label: string | null;
  name: string;
  description: string;
  properties: Properties;
  shape: RoiShape;
  track: KeyFrame[];
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
  parent: string | null;
  /** 1 to 9, or nothing. */
  key: string;
  retired: boolean;
}
