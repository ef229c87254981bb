/** REST client of mosaics: lists, frames at a point, frame columns, estimates. */

import type { Schemas } from "../../api/schemas";
import { getAll, getJson, postJson } from "../lib/http";
import type { Page } from "../lib/http";
import type { FrameColumns } from "../video/frame_status";
import type { Position } from "../lib/types";

const ROOT = "/api/v1/mosaics/";

export type MosaicData = Schemas["Mosaic"];
export type MosaicComponentData = Schemas["MosaicComponent"];
export type MosaicLayerData = Schemas["MosaicLayer"];
export type FrameAtPoint = Schemas["FrameAtPoint"];
/** A frame that sees an ROI of the mosaic. */
export type RoiInFrame = Schemas["RoiInFrame"];
export type ProjectedRoi = Schemas["ProjectedRoi"];
export type Estimate = Schemas["Estimate"];

/** The ready mosaics of a video, newest first. */
export async function mosaicsOfVideo(video: string): Promise<MosaicData[]> {
  return (await getAll<MosaicData>(`${ROOT}?video=${video}&state=ready&page_size=200`)).reverse();
}

export async function mosaicOfCanvas(canvas: string): Promise<MosaicData | null> {
  return (await getJson<Page<MosaicData>>(`${ROOT}?canvas=${canvas}`)).results[0] ?? null;
}

export function frameColumns(mosaic: string): Promise<FrameColumns> {
  return getJson<FrameColumns>(`${ROOT}${mosaic}/outlines/`);
}

export function askFramesAtPoint(
  mosaic: string,
  component: number,
  [x, y]: Position,
  signal?: AbortSignal,
): Promise<Schemas["FramesAtPoint"]> {
  return getJson(`${ROOT}${mosaic}/frames-at-point/?x=${x.toFixed(2)}&y=${y.toFixed(2)}&component=${component}&limit=100`, signal);
}

export interface Span {
  start_s: number;
  end_s: number;
}

export function estimate(video: string, { start_s, end_s }: Span, signal?: AbortSignal): Promise<Estimate> {
  return getJson(`${ROOT}estimate/?video=${video}&start_s=${start_s}&end_s=${end_s}`, signal);
}

export function mosaicBuild(video: string, config: Span): Promise<Schemas["MosaicAccepted"]> {
  return postJson(ROOT, { video, config });
}

/** ROIs drawn on frames of the video, projected onto a component of the mosaic. */
export async function projectedOnComponent(mosaic: string, component: number): Promise<ProjectedRoi[]> {
  return (await getJson<Schemas["ProjectedRois"]>(`${ROOT}${mosaic}/projected-rois/?component=${component}`)).results;
}

/** ROIs drawn on the mosaic, projected into one frame of the video. */
export async function projectedInFrame(mosaic: string, pts: number, signal: AbortSignal): Promise<ProjectedRoi[]> {
  return (await getJson<Schemas["ProjectedRois"]>(`${ROOT}${mosaic}/projected-rois/?pts=${pts}`, signal)).results;
}

export async function roiFrames(mosaic: string, roi: string, signal?: AbortSignal): Promise<RoiInFrame[]> {
  return (await getJson<Schemas["RoiFrames"]>(`${ROOT}${mosaic}/roi-frames/?roi=${roi}`, signal)).results;
}
