import { describe, expect, it } from "vitest";

import { begunAt, uncertaintyPxAt, endedAt, keyFrames, nextKeyFrame, outlineOn, withKeyFrame, withoutFrame } from "@/viewer/rois/shapes/track";
import type { Tracked } from "@/viewer/rois/shapes/track";
import { boundsOf } from "@/viewer/rois/shapes/outlines";
import type { FrameRef, KeyFrame, RoiGeometry } from "@/viewer/lib/types";

const box = (left: number): RoiGeometry => ({
  type: "Polygon",
  coordinates: [[[left, 0], [left + 10, 0], [left + 10, 10], [left, 10], [left, 0]]],
});
const frameAt = (index: number): FrameRef => ({ index, pts: index * 40, time_s: index / 25 });
const key = (index: number, left: number | null, more: Partial<KeyFrame> = {}): KeyFrame => ({
  ...{ index, pts: index * 40, geometry: left === null ? null : box(left), shape: "polygon" },
  ...{ outside: left === null, by: "hand", drift_px: 0, ...more },
});
const roi = (track: KeyFrame[], own = 10): Tracked => ({ frame: frameAt(own), geometry: box(0), shape: "polygon", track });
const leftOn = (tracked: Tracked, index: number): number | null => {
  const outline = outlineOn(tracked, index);
  return outline && boundsOf([outline.geometry])[0];
};

describe("a track", () => {
  it("is there from its first key frame to its last, straight between them", () => {
    const tracked = roi([key(20, 100), key(5, 50)]);
    expect([4, 5, 10, 15, 20, 21].map((index) => leftOn(tracked, index))).toEqual([null, 50, 0, 50, 100, null]);
    expect(keyFrames(tracked).map(({ index }) => index)).toEqual([5, 10, 20]);
  });

  it("is not there from a key frame that is outside to the next", () => {
    const tracked = roi([key(14, null), key(18, 80), key(22, 80)]);
    expect([13, 14, 17, 18, 20].map((index) => leftOn(tracked, index))).toEqual([0, null, null, 80, 80]);
  });

  it("takes a correction anywhere, also on its own frame's neighbours", () => {
    const tracked = roi([key(20, 100)]);
    const track = withKeyFrame(tracked, frameAt(15), { geometry: box(7), shape: "polygon" });
    expect([12.5, 15].map((index) => leftOn({ ...tracked, track }, index))).toEqual([3.5, 7]);
    expect(track.find(({ index }) => index === 15)?.by).toBe("hand");
  });

  it("leaves the other frames as they were where one is deleted", () => {
    const tracked = roi([key(20, 100)]);
    const track = withoutFrame(tracked, frameAt(15), frameAt) ?? [];
    const now = { ...tracked, track };
    expect(leftOn(now, 15)).toBeNull();
    for (let index = 10; index <= 20; index += 1) if (index !== 15) expect(leftOn(now, index)).toBe(leftOn(tracked, index));
  });

  it("can be deleted on its own frame, and on its last", () => {
    const tracked = roi([key(12, 20)]);
    const first = { ...tracked, track: withoutFrame(tracked, frameAt(10), frameAt) ?? [] };
    expect([10, 11, 12].map((index) => leftOn(first, index))).toEqual([null, 10, 20]);
    const last = { ...tracked, track: withoutFrame(tracked, frameAt(12), frameAt) ?? [] };
    expect([10, 11, 12].map((index) => leftOn(last, index))).toEqual([0, 10, null]);
  });

  it("is never left without a frame", () => {
    expect(withoutFrame(roi([]), frameAt(10), frameAt)).toBeNull();
  });

  it("begins and ends where it is told to", () => {
    const tracked = roi([key(5, 50), key(20, 100)]);
    const ended = { ...tracked, track: endedAt(tracked, frameAt(15)) ?? [] };
    expect([5, 15, 16, 20].map((index) => leftOn(ended, index))).toEqual([50, 50, null, null]);
    const begun = { ...tracked, track: begunAt(tracked, frameAt(15)) ?? [] };
    expect([5, 10, 14, 15, 20].map((index) => leftOn(begun, index))).toEqual([null, null, null, 50, 100]);
  });

  it("says how uncertain it is between two key frames", () => {
    const tracked = roi([key(20, 100, { by: "tracking", drift_px: 2 }), key(30, 100)]);
    expect([10, 12, 20, 25, 30].map((index) => uncertaintyPxAt(tracked, index))).toEqual([0, 2, 2, 2, 0]);
  });

  it("leads from key frame to key frame", () => {
    const tracked = roi([key(5, 50), key(20, 100)]);
    expect([nextKeyFrame(tracked, 5, 1), nextKeyFrame(tracked, 12, -1), nextKeyFrame(tracked, 20, 1)]).toEqual([10, 10, null]);
  });
});
