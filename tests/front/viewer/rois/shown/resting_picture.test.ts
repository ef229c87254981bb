import type { FrameState } from "ol/Map";
import CanvasVectorImageLayerRenderer from "ol/renderer/canvas/VectorImageLayer";
import VectorSource from "ol/source/Vector";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { RestingPicture } from "@/viewer/rois/shown/resting_picture";

const frame = (resolution: number): FrameState => ({ viewState: { resolution }, viewHints: [0, 0] }) as unknown as FrameState;

/** A picture that was painted once, and whether each frame since was told to paint it anew. */
function made(isHeavy: boolean): { show: (resolution: number) => boolean; changed: () => number } {
  const paints: boolean[] = [];
  vi.spyOn(CanvasVectorImageLayerRenderer.prototype, "prepareFrame").mockImplementation(({ viewHints }) => {
    paints.push(viewHints[0] === 0);
    return true;
  });
  const layer = new RestingPicture({ source: new VectorSource() });
  layer.isHeavy = () => isHeavy;
  const before = layer.getRevision();
  const renderer = layer.createRenderer();
  renderer.prepareFrame(frame(8));
  Object.assign(renderer, { image: {} });
  const show = (resolution: number): boolean => {
    renderer.prepareFrame(frame(resolution));
    return paints.at(-1) ?? false;
  };
  return { show, changed: () => layer.getRevision() - before };
}

describe("RestingPicture", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it("of thousands is painted once the zoom rests, and asks for that itself", () => {
    const { show, changed } = made(true);
    expect(show(8)).toBe(true); // moved, not zoomed
    expect([show(4), show(2)]).toEqual([false, false]);
    vi.advanceTimersByTime(200);
    expect(show(1)).toBe(false); // the next click of the wheel
    vi.advanceTimersByTime(200);
    expect([show(1), changed()]).toEqual([false, 0]);
    vi.advanceTimersByTime(200);
    expect([show(1), changed()]).toEqual([true, 1]);
  });

  it("of a few is painted at once", () => {
    const { show } = made(false);
    expect([show(4), show(2)]).toEqual([true, true]);
  });
});
