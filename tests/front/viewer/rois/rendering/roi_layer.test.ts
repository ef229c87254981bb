import { beforeEach, describe, expect, it, vi } from "vitest";

import { RoiLayer } from "@/viewer/rois/rendering/roi_layer";
import { Labels } from "@/viewer/rois/store/labels";
import { RoiStore } from "@/viewer/rois/store/roi_store";
import { geometryToL0 } from "@/viewer/map/pixel_plane";
import type { CanvasData } from "@/viewer/lib/types";
import { roi, square } from "../fake_server";

beforeEach(() => {
  vi.stubGlobal("requestAnimationFrame", () => 0);
  vi.stubGlobal("addEventListener", () => undefined);
});

function layer(...ids: string[]): { store: RoiStore; layer: RoiLayer } {
  const store = new RoiStore({ id: "c" } as CanvasData);
  const made = new RoiLayer(store, Labels.empty());
  store.merge(ids.map((id) => roi({ id, geometry: square(0) })));
  return { store, layer: made };
}

describe("what is selected", () => {
  it("is dragged as a copy: the picture of all others is not touched", () => {
    const { layer: made } = layer("a", "b");
    made.select("a");
    const before = made.source.getRevision();
    made.featureOf("a")?.getGeometry()?.translate(5, 5);
    expect(made.source.getRevision()).toBe(before);
    expect(geometryToL0(made.source.getFeatureById("a")?.getGeometry())).toEqual(square(0));
  });

  it("is its own feature again once it is not selected", () => {
    const { layer: made } = layer("a", "b");
    made.select("a");
    expect(made.featureOf("a")).not.toBe(made.source.getFeatureById("a"));
    made.select("b");
    expect(made.featureOf("a")).toBe(made.source.getFeatureById("a"));
  });

  it("takes a new outline over in the picture and in the copy, but not while it is dragged", () => {
    const { store, layer: made } = layer("a");
    made.select("a");
    made.isModifying = true;
    store.merge([roi({ id: "a", version: 2, geometry: square(9) })]);
    expect(geometryToL0(made.featureOf("a")?.getGeometry())).toEqual(square(0));
    made.isModifying = false;
    store.merge([roi({ id: "a", version: 3, geometry: square(7) })]);
    for (const feature of [made.featureOf("a"), made.source.getFeatureById("a")]) {
      expect(geometryToL0(feature?.getGeometry() as never)).toEqual(square(7));
    }
  });

  it("goes with what is filtered away or deleted", () => {
    const { layer: made } = layer("a");
    made.select("a");
    made.setFilter("label", () => false);
    expect(made.featureOf("a")).toBeNull();
    made.setFilter("label", () => true);
    expect(made.featureOf("a")).not.toBe(made.source.getFeatureById("a")); // still selected
  });
});
