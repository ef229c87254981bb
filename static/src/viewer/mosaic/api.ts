/** Mosaics over REST: which there are, which frames saw a point, every frame at once, estimates. */

import { getAll, getJson, postJson } from "../lib/http";
import type { FrameColumns } from "../video/frame_status";
import type { Position, RoiGeometry } from "../lib/types";

const ROOT = "/api/v1/mosaics/";

export interface MosaicLayerData {
  name: string;
  unit: string;
  minimum: number;
  maximum: number;
  /** Mosaic pixels per pixel of the layer. */
  downsample: number;
  url: string;
}

export interface MosaicComponentData {
  index: number;
  canvas: string;
  width: number;
  height: number;
  layers: MosaicLayerData[];
}

export interface MosaicData {
  id: string;
  video: string;
  /** The canvas of the video. */
  video_canvas: string;
  frame_width: number;
  frame_height: number;
  name: string;
  components: MosaicComponentData[];
}

export interface FrameAtPoint {
  index: number;
  pts: number;
  time_s: number;
  xy_frame: Position;
  sharpness: number | null;
  uncertainty_px: number | null;
  outline: Position[];
  image_url: string;
  viewer_url: string;
}

/** A frame that sees an ROI of the mosaic. */
export interface RoiInFrame extends FrameAtPoint {
  geometry: RoiGeometry;
  /** Of the outline that is in the frame. */
  share: number;
}

export interface ProjectedRoi {
  roi: string;
  drawn_on: string;
  frame_index: number | null;
  frame_pts: number | null;
  label: string | null;
  name: string;
  geometry: RoiGeometry;
  share: number;
  uncertainty_px: number | null;
}

interface Listed {
  results: MosaicData[];
}

/** The ready mosaics of a video, newest first. */
export async function mosaicsOfVideo(video: string): Promise<MosaicData[]> {
  return (await getAll<MosaicData>(`${ROOT}?video=${video}&state=ready&page_size=200`)).reverse();
}

export async function mosaicOfCanvas(canvas: string): Promise<MosaicData | null> {
  return (await getJson<Listed>(`${ROOT}?canvas=${canvas}`)).results[0] ?? null;
}

export function frameColumns(mosaic: string): Promise<FrameColumns> {
  return getJson<FrameColumns>(`${ROOT}${mosaic}/outlines/`);
}

export function askFramesAtPoint(
  mosaic: string,
  component: number,
  [x, y]: Position,
  signal?: AbortSignal,
): Promise<{ count: number; results: FrameAtPoint[] }> {
  return getJson(`${ROOT}${mosaic}/frames-at-point/?x=${x.toFixed(2)}&y=${y.toFixed(2)}&component=${component}&limit=100`, signal);
}

export interface Estimate {
  frames: number;
  used: number;
  seconds: number | null;
  builds: number;
}

export interface Span {
  start_s: number;
  end_s: number;
}

export function estimate(video: string, { start_s, end_s }: Span, signal?: AbortSignal): Promise<Estimate> {
  return getJson(`${ROOT}estimate/?video=${video}&start_s=${start_s}&end_s=${end_s}`, signal);
}

export function mosaicBuild(video: string, config: Span): Promise<{ id: string }> {
  return postJson(ROOT, { video, config });
}

/** ROIs drawn on frames of the video, projected onto a component of the mosaic. */
export async function projectedOnComponent(mosaic: string, component: number): Promise<ProjectedRoi[]> {
  return (await getJson<{ results: ProjectedRoi[] }>(`${ROOT}${mosaic}/projected-rois/?component=${component}`)).results;
}

/** ROIs drawn on the mosaic, projected into one frame of the video. */
export async function projectedInFrame(mosaic: string, pts: number, signal: AbortSignal): Promise<ProjectedRoi[]> {
  return (await getJson<{ results: ProjectedRoi[] }>(`${ROOT}${mosaic}/projected-rois/?pts=${pts}`, signal)).results;
}

export async function roiFrames(mosaic: string, roi: string, signal?: AbortSignal): Promise<RoiInFrame[]> {
  return (await getJson<{ results: RoiInFrame[] }>(`${ROOT}${mosaic}/roi-frames/?roi=${roi}`, signal)).results;
}
