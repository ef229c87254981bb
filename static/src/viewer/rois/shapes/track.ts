/** An ROI on more than one frame of a video: its key frames, and what it is between them. */

import type { FrameRef, KeyFrame, RoiGeometry, RoiShape } from "../../lib/types";
import { interpolatedOutline } from "./interpolation";
import type { ShapedOutline } from "./interpolation";

/** An ROI with its own frame and outline, and its track. */
export interface Tracked {
  frame: FrameRef | null;
  geometry: RoiGeometry;
  shape: RoiShape;
  track: KeyFrame[];
}

/** All key frames in order, including the ROI's own. */
export function keyFrames({ frame, geometry, shape, track }: Tracked): KeyFrame[] {
  if (!frame) return [];
  const flagged = track.find(({ index }) => index === frame.index);
  const ownKey: KeyFrame = flagged ?? {
    ...{ index: frame.index, pts: frame.pts, geometry, shape },
    ...{ outside: false, by: "hand", drift_px: 0 },
  };
  return [...track.filter(({ index }) => index !== frame.index), ownKey].sort((a, b) => a.index - b.index);
}

/** The outline on a frame, or null if the ROI is not there. */
export function outlineOn(roi: Tracked, index: number): ShapedOutline | null {
  const keys = keyFrames(roi);
  const at = keys.findLastIndex((key) => key.index <= index);
  const [last, next] = [keys[at], keys[at + 1]];
  if (!last || last.outside || !last.geometry) return null;
  const from = { geometry: last.geometry, shape: last.shape };
  if (last.index === index) return from;
  if (!next) return null;
  if (!next.geometry) return from; // constant up to its end
  return interpolatedOutline(from, { geometry: next.geometry, shape: next.shape }, (index - last.index) / (next.index - last.index));
}

/** Uncertainty of a tracked outline in pixels; 0 if drawn by hand. */
export function uncertaintyPxAt(roi: Tracked, index: number): number {
  const keys = keyFrames(roi);
  const at = keys.findLastIndex((key) => key.index <= index);
  const [last, next] = [keys[at], keys[at + 1]];
  if (!last) return 0;
  if (last.index === index || !next) return last.drift_px;
  return Math.max(last.drift_px, next.drift_px);
}

/** The track with a manual key frame added. */
export function withKeyFrame(roi: Tracked, frame: FrameRef, outline: ShapedOutline): KeyFrame[] {
  const key: KeyFrame = {
    ...{ index: frame.index, pts: frame.pts, ...outline },
    ...{ outside: false, by: "hand", drift_px: 0 },
  };
  return sorted([...without(roi.track, frame.index), key]);
}

const without = (track: KeyFrame[], index: number): KeyFrame[] => track.filter((key) => key.index !== index);
const sorted = (track: KeyFrame[]): KeyFrame[] => [...track].sort((a, b) => a.index - b.index);
const outside = ({ index, pts }: FrameRef): KeyFrame => ({
  ...{ index, pts, geometry: null, shape: "polygon", outside: true, by: "hand", drift_px: 0 },
});

/** Frames by their index. */
export type FrameAt = (index: number) => FrameRef;

/** Remove the ROI from this frame only; the neighbouring frames keep their outlines. Null if nothing is left. */
export function withoutFrame(roi: Tracked, frame: FrameRef, frameAt: FrameAt): KeyFrame[] | null {
  const { index } = frame;
  const keys = keyFrames(roi);
  const [first, last] = [keys[0]?.index ?? index, keys.at(-1)?.index ?? index];
  if (first === last) return null;
  let track = roi.track;
  const ownIndex = roi.frame?.index;
  for (const near of [index - 1, index + 1]) {
    const outline = near >= first && near <= last ? outlineOn(roi, near) : null;
    const isKey = near === ownIndex || track.some((key) => key.index === near);
    if (outline && !isKey) track = withKeyFrame({ ...roi, track }, frameAt(near), outline);
  }
  track = sorted([...without(track, index), outside(frame)]);
  return isVisibleSomewhere({ ...roi, track }) ? withoutLeadingOutside(track, ownIndex) : null;
}

/** End the track at this frame, without later key frames. */
export function endedAt(roi: Tracked, frame: FrameRef): KeyFrame[] | null {
  return cut(roi, frame, (index) => index > frame.index);
}

/** Begin the track at this frame, without earlier key frames. */
export function begunAt(roi: Tracked, frame: FrameRef): KeyFrame[] | null {
  return cut(roi, frame, (index) => index < frame.index);
}

function cut(roi: Tracked, frame: FrameRef, isGone: (index: number) => boolean): KeyFrame[] | null {
  const outline = outlineOn(roi, frame.index);
  if (!outline || !roi.frame) return null;
  const track = roi.track.filter((key) => !isGone(key.index));
  const isKey = roi.frame.index === frame.index || track.some((key) => key.index === frame.index);
  const keys = isKey ? track : withKeyFrame({ ...roi, track }, frame, outline);
  // the frame stays a key frame at which the region is absent
  return isGone(roi.frame.index) ? sorted([...without(keys, roi.frame.index), outside(roi.frame)]) : keys;
}

/** Drop leading "outside" key frames, except the ROI's own. */
function withoutLeadingOutside(track: KeyFrame[], ownIndex: number | undefined): KeyFrame[] {
  const trimmed = [...track];
  while (trimmed[0]?.outside && trimmed[0].index !== ownIndex && (ownIndex === undefined || trimmed[0].index < ownIndex)) trimmed.shift();
  return trimmed;
}

function isVisibleSomewhere(roi: Tracked): boolean {
  return keyFrames(roi).some((key) => !key.outside);
}

/** The key frame before or after a frame, by index; null if there is none. */
export function nextKeyFrame(roi: Tracked, index: number, by: 1 | -1): number | null {
  const places = keyFrames(roi).map((key) => key.index);
  const next = by > 0 ? places.find((place) => place > index) : places.findLast((place) => place < index);
  return next ?? null;
}
