import { describe, expect, it } from "vitest";

import { placeOutlines } from "@/viewer/rois/tools/clipboard";
import { featureCollectionOf, parseCopiedRois } from "@/viewer/rois/store/geojson_text";
import { Labels } from "@/viewer/rois/store/labels";
import { boundsOf } from "@/viewer/rois/shapes/outlines";
import { RoiState } from "@/viewer/rois/store/roi_state";
import { canvas } from "../../canvases";
import { roi, square } from "../fake_server";

const labels = Labels.empty();
const state = RoiState.fromServer(roi({ name: "gland", shape: "ellipse", geometry: square(20) }));
const text = JSON.stringify(featureCollectionOf([state], canvas({ mpp_x: 0.25, mpp_y: 0.25 }), labels));

describe("copies", () => {
  it("come to the scale of the other canvas", () => {
    const copy = parseCopiedRois(text, canvas({ id: "c2", mpp_x: 0.5, mpp_y: 0.5 }), labels);
    expect(copy?.from).toBe("c1");
    expect(copy?.rois[0]).toMatchObject({ name: "gland", shape: "ellipse", label: null });
    expect(boundsOf(copy?.rois.map(({ geometry }) => geometry) ?? [])).toEqual([10, 10, 15, 15]);
  });

  it("stay in pixels where a scale is unknown", () => {
    const copy = parseCopiedRois(text, canvas({ mpp_x: null, mpp_y: null }), labels);
    expect(boundsOf(copy?.rois.map(({ geometry }) => geometry) ?? [])).toEqual([20, 20, 30, 30]);
  });

  it("keep points and lines, and what is said of them", () => {
    const feature = {
      type: "Feature",
      geometry: { type: "LineString", coordinates: [[1, 2], [3, 4]] },
      properties: { metadata: { ANNOTATION_DESCRIPTION: "thin", Grade: "2", "tessera.review_state": "draft", n: 7 } },
    };
    const [line] = parseCopiedRois(JSON.stringify(feature), canvas(), labels)?.rois ?? [];
    expect(line).toMatchObject({ shape: "line", description: "thin", properties: { Grade: "2" } });
  });

  it("of QuPath are read as well", () => {
    const feature = { type: "Feature", geometry: square(), properties: { classification: { name: "None" } } };
    expect(parseCopiedRois(JSON.stringify(feature), canvas(), labels)?.rois).toHaveLength(1);
  });

  it.each(["", "hello", "[]", "{}", '{"type":"FeatureCollection","features":[{"geometry":{"type":"Point","coordinates":["a",2]}}]}',
    '{"features":[{"geometry":{"type":"Polygon","coordinates":[[["x",1],[2,3],[4,5],[6,7]]]}}]}'])("that are none are left alone: %s", (other) => {
    expect(parseCopiedRois(other, canvas(), labels)).toBeNull();
  });

  it("lie with their middle under the pointer, or in the middle where they would lie outside", () => {
    const rois = [{ geometry: square(20), shape: "polygon" as const, label: null, name: "", description: "", properties: {} }];
    const bounds = (at: [number, number] | null, given = rois): number[] =>
      boundsOf(placeOutlines(given, canvas(), at, [500, 300]).map(({ geometry }) => geometry));
    expect(bounds([100, 100])).toEqual([95, 95, 105, 105]);
    expect(bounds(null)).toEqual([20, 20, 30, 30]);
    const far = rois.map((one) => ({ ...one, geometry: square(5000) }));
    expect(bounds(null, far)).toEqual([495, 295, 505, 305]);
  });
});
