import { describe, expect, it } from "vitest";

import { matchesSearch } from "../../../../../static/src/viewer/rois/panel/roi_filter";
import { propertiesText, propertyChanges } from "../../../../../static/src/viewer/rois/panel/properties";
import { ROI_MERGE } from "../../../../../static/src/viewer/rois/store/merge";
import { versionOf } from "../../../../../static/src/viewer/rois/store/roi_state";
import { roi } from "../fake_server";

describe("properties", () => {
  it("are told in words, and so is what changed of them", () => {
    expect(propertiesText({ Grade: "2", Margin: "clear" })).toBe("Grade: 2; Margin: clear");
    expect(propertyChanges({ Grade: "1", Old: "x" }, { Grade: "2", New: "y" })).toEqual([
      "Grade 1 → 2",
      "New none → y",
      "Old x → none",
    ]);
  });

  it("differ by what they say, whatever their order", () => {
    const mine = versionOf(roi({ properties: { a: "1", b: "2" } }));
    expect(ROI_MERGE.differingFields(mine, versionOf(roi({ properties: { b: "2", a: "1" } })))).toEqual([]);
    expect(ROI_MERGE.differingFields(mine, versionOf(roi({ properties: { a: "1" }, description: "d" })))).toEqual(["description", "properties"]);
  });

  it("are searched with name, label and description, word by word", () => {
    const said = { name: "Gland 7", description: "near the margin", properties: { Grade: "2" } };
    expect(matchesSearch(said, "Tumor", "")).toBe(true);
    expect(matchesSearch(said, "Tumor", "tumor GRADE margin 7")).toBe(true);
    expect(matchesSearch(said, "Tumor", "stroma")).toBe(false);
  });
});
