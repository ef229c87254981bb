import { expect, it } from "vitest";

import { Labels } from "@/viewer/rois/store/labels";
import type { ProjectedRoi } from "@/viewer/mosaic/api";
import { ProjectedLayer, projectedHref, projectedText } from "@/viewer/mosaic/projected_layer";
import { square } from "../rois/fake_server";

/** An ROI of frame 8 that lies on the mosaic. */
const ROI: ProjectedRoi = {
  roi: "r1",
  version: 1,
  drawn_on: "c9",
  frame_index: 7,
  frame_pts: 280,
  label: null,
  name: "",
  geometry: square(100),
  share: 1,
  uncertainty_px: 0.456,
};

it("says where it was drawn, and how sure its place is", () => {
  const labels = Labels.empty();
  expect(projectedText(ROI, labels)).toBe("A region: projected from frame 8 of the video, ± 0.46 px.");
  const ofMosaic = { ...ROI, name: "Polyp", frame_index: null, uncertainty_px: null };
  expect(projectedText(ofMosaic, labels)).toBe("Polyp: projected from the mosaic.");
});

it("leads to where it was drawn, and to the frame", () => {
  expect(projectedHref(ROI)).toBe("/canvases/c9/?roi=r1&t=280");
  expect(projectedHref({ ...ROI, frame_pts: null })).toBe("/canvases/c9/?roi=r1");
});

it("is found inside its outline, in level-0 pixels", () => {
  const layer = new ProjectedLayer(Labels.empty());
  layer.show([ROI]);
  expect(layer.at([105, 105], 1)).toBe(ROI);
  expect(layer.at([120, 105], 1)).toBeNull();
  layer.show([]);
  expect(layer.at([105, 105], 1)).toBeNull();
});
