import Feature from "ol/Feature";
import type OlMap from "ol/Map";
import Polygon from "ol/geom/Polygon";
import CanvasImmediateRenderer from "ol/render/canvas/Immediate";
import CanvasVectorImageLayerRenderer from "ol/renderer/canvas/VectorImageLayer";
import VectorSource from "ol/source/Vector";
import Fill from "ol/style/Fill";
import Style from "ol/style/Style";
import Text from "ol/style/Text";
import type { FrameState } from "ol/Map";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { DeferredImageLayer } from "@/viewer/rois/rendering/deferred_layer";
import { FEATURES_PER_FRAME } from "@/viewer/rois/rendering/incremental_paint";

const COUNT = 2 * FEATURES_PER_FRAME + 1;

function frame(resolution: number, center = [0, 0], isMoving = 0): FrameState {
  const viewState = { resolution, center, rotation: 0 };
  return { viewState, viewHints: [isMoving, 0], size: [100, 100], pixelRatio: 1 } as unknown as FrameState;
}

/** A picture that was painted once; what was painted at once since, and how many features with each frame. */
class Painted {
  readonly atOnce: boolean[] = [];
  readonly slices: number[] = [];
  renders = 0;
  readonly source = new VectorSource<Feature<Polygon>>();
  readonly layer = new DeferredImageLayer({ source: this.source });
  readonly renderer: CanvasVectorImageLayerRenderer;

  constructor(isHeavy: boolean, style = new Style({ fill: new Fill({ color: "red" }) })) {
    vi.spyOn(CanvasVectorImageLayerRenderer.prototype, "prepareFrame").mockImplementation(({ viewHints }) => {
      this.atOnce.push(viewHints[0] === 0);
      return true;
    });
    vi.spyOn(CanvasImmediateRenderer.prototype, "drawFeature").mockImplementation(() => {
      this.slices[this.slices.length - 1] = (this.slices.at(-1) ?? 0) + 1;
    });
    vi.spyOn(this.layer, "getMapInternal").mockReturnValue({ render: () => (this.renders += 1) } as unknown as OlMap);
    this.layer.setStyle(style);
    this.layer.isHeavy = () => isHeavy;
    for (let n = 0; n < COUNT; n += 1) this.source.addFeature(new Feature(new Polygon([[[0, 0], [1, 0], [1, 1], [0, 0]]])));
    this.renderer = this.layer.createRenderer();
    this.renderer.prepareFrame(frame(8));
    Object.assign(this.renderer, { image: {} });
    this.atOnce.length = 0;
  }

  show(...of: Parameters<typeof frame>): void {
    this.renderer.prepareFrame(frame(...of));
  }

  /** So many frames pass. */
  frames(count: number): void {
    for (let n = 0; n < count; n += 1) {
      this.slices.push(0);
      vi.advanceTimersByTime(16);
    }
  }
}

describe("RestingPicture", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("requestAnimationFrame", (run: () => void) => setTimeout(run, 16));
    vi.stubGlobal("cancelAnimationFrame", (timer: ReturnType<typeof setTimeout>) => clearTimeout(timer));
    const canvas = { getContext: () => ({ getImageData: () => null }) };
    vi.stubGlobal("document", { createElement: () => canvas });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it("of thousands is painted once the zoom rests, some with each frame, none of them at once", () => {
    const painted = new Painted(true);
    painted.show(4);
    vi.advanceTimersByTime(200);
    painted.show(2); // the next click of the wheel
    vi.advanceTimersByTime(200);
    painted.show(2);
    expect(painted.renders).toBe(0);
    vi.advanceTimersByTime(200);
    expect(painted.renders).toBe(1); // asked for by itself
    painted.show(2);
    painted.frames(4);
    expect(painted.slices).toEqual([FEATURES_PER_FRAME, FEATURES_PER_FRAME, 1, 0]);
    expect(painted.renders).toBe(2);
    painted.show(2);
    painted.frames(1);
    expect([painted.slices.at(-1), painted.atOnce]).toEqual([0, [false, false, false, false, false]]);
  });

  it("is begun again where the view moves on, and let be done where only the ROIs change", () => {
    const painted = new Painted(true);
    painted.show(8, [9, 0]);
    painted.frames(1);
    painted.source.addFeature(new Feature(new Polygon([[[0, 0], [1, 0], [1, 1], [0, 0]]])));
    painted.show(8, [9, 0]);
    painted.frames(2);
    expect(painted.slices).toEqual([FEATURES_PER_FRAME, FEATURES_PER_FRAME, 1]);
    painted.show(8, [9, 0]); // now with the new one
    painted.frames(1);
    painted.show(8, [18, 0]);
    painted.frames(3);
    expect(painted.slices.slice(3)).toEqual([FEATURES_PER_FRAME, FEATURES_PER_FRAME, FEATURES_PER_FRAME, 2]);
  });

  it("of a few, and with names, is painted at once", () => {
    const few = new Painted(false);
    few.show(4);
    few.show(4, [0, 0], 1);
    expect(few.atOnce).toEqual([true, false]);
    vi.restoreAllMocks();
    const named = new Painted(true, new Style({ text: new Text({ text: "a" }) }));
    named.show(8, [9, 0]);
    expect(named.atOnce).toEqual([true]);
  });
});
