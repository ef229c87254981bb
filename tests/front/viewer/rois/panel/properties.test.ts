import { describe, expect, it } from "vitest";

import { saysAll } from "../../../../../static/src/viewer/rois/panel/list";
import { propertiesText, propertyChanges } from "../../../../../static/src/viewer/rois/panel/properties";
import { differing } from "../../../../../static/src/viewer/rois/saved/merge";
import { versionOf } from "../../../../../static/src/viewer/rois/saved/state";
import { roi } from "../server";

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
    expect(differing(mine, versionOf(roi({ properties: { b: "2", a: "1" } })))).toEqual([]);
    expect(differing(mine, versionOf(roi({ properties: { a: "1" }, description: "d" })))).toEqual(["description", "properties"]);
  });

  it("are searched with name, label and description, word by word", () => {
    const said = { name: "Gland 7", description: "near the margin", properties: { Grade: "2" } };
    expect(saysAll(said, "Tumor", "")).toBe(true);
    expect(saysAll(said, "Tumor", "tumor GRADE margin 7")).toBe(true);
    expect(saysAll(said, "Tumor", "stroma")).toBe(false);
  });
});
