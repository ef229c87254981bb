import { describe, expect, it } from "vitest";

import { PLANE_SIDE } from "@/explore/map_points";
import type { MapPoint } from "@/explore/map_points";
import { MapViewport } from "@/explore/map_viewport";

function view(): MapViewport {
  const made = new MapViewport();
  made.size(800, 600);
  return made;
}

function pixelOf(of: MapViewport, [x, y]: MapPoint): MapPoint {
  const { scale, left, top } = of.transform(1);
  return [x * scale + left, y * scale + top];
}

function expectClose([x, y]: MapPoint, [toX, toY]: MapPoint): void {
  expect(x).toBeCloseTo(toX);
  expect(y).toBeCloseTo(toY);
}

describe("the part of the plane that is seen", () => {
  it("is all of it at first, in the middle and with a margin", () => {
    const whole = view();
    expectClose(pixelOf(whole, [PLANE_SIDE / 2, PLANE_SIDE / 2]), [400, 300]);
    expectClose(pixelOf(whole, [0, 0]), [400 - 0.46 * 600, 0.04 * 600]);
    expectClose(pixelOf(whole, [PLANE_SIDE, PLANE_SIDE]), [400 + 0.46 * 600, 0.96 * 600]);
  });

  it("tells the place at a pixel, wherever it was moved to", () => {
    const moved = view();
    moved.zoomBy(7, [10_000, 50_000]);
    moved.drag(33, -21);
    for (const place of [[0, 0], [12_345, 54_321]] as const) expectClose(moved.place(...pixelOf(moved, place)), place);
  });

  it("comes closer about the place that is pointed at", () => {
    const closer = view();
    const about: MapPoint = [20_000, 15_000];
    const before = pixelOf(closer, about);
    closer.zoomBy(3, about);
    expectClose(pixelOf(closer, about), before);
    closer.zoomBy(0.5, about);
    expectClose(pixelOf(closer, about), before);
    expect(closer.zoom).toBeCloseTo(1.5);
  });

  it("follows the hand by as many pixels", () => {
    const dragged = view();
    dragged.zoomBy(4);
    const before = pixelOf(dragged, [PLANE_SIDE / 2, PLANE_SIDE / 2]);
    dragged.drag(30, 12);
    expectClose(pixelOf(dragged, [PLANE_SIDE / 2, PLANE_SIDE / 2]), [before[0] + 30, before[1] + 12]);
  });

  it("is never farther than the whole, which is in the middle then, nor closer than points lie apart", () => {
    const ends = view();
    ends.zoomBy(1e9, [1, 1]);
    expect(ends.zoom).toBe(200);
    ends.drag(5_000, 5_000);
    ends.zoomBy(0);
    expect(ends.zoom).toBe(1);
    expectClose(pixelOf(ends, [PLANE_SIDE / 2, PLANE_SIDE / 2]), [400, 300]);
  });

  it("is the same for a picture with more pixels", () => {
    const fine = view();
    fine.zoomBy(2, [100, 100]);
    const one = fine.transform(1);
    expect(fine.transform(2)).toEqual({ scale: 2 * one.scale, left: 2 * one.left, top: 2 * one.top });
  });
});
