import { describe, expect, it } from "vitest";

import { countsOf, outcomeText, importButtonText, placesText, progressText, reasonText, stageText, undoneText } from "@/viewer/rois/store/import_texts";
import type { ImportReport } from "@/viewer/rois/store/imports";
import { pathOfFlat } from "@/viewer/rois/rendering/import_preview";

const report = (counts: Partial<ImportReport>): ImportReport => ({
  ...{ total: 0, format: "geojson", image_decided: "", created: 0, updated: 0, restored: 0, unchanged: 0, refused: 0, repaired: 0, events: 0 },
  ...{ labels_created: [], classes: [], groups: [], id: null, is_preview: false, items: [] },
  ...counts,
});

describe("the text of an import", () => {
  it("names each count that is not zero", () => {
    const found = countsOf(report({ created: 12_000, refused: 1 }), false);
    expect(found.map(({ text }) => text)).toEqual(["12,000 new", "1 refused"]);
    expect(countsOf(report({ created: 2 }), true)[0]?.text).toBe("2 made");
  });

  it("says on the button how many ROIs are written", () => {
    expect(importButtonText(report({ created: 1 }))).toBe("Import 1 region");
    expect(importButtonText(report({ created: 1, updated: 1, unchanged: 9 }))).toBe("Import 2 regions");
    expect(importButtonText(report({ unchanged: 9 }))).toBe("Nothing to import");
  });

  it("counts events of a video apart", () => {
    expect(importButtonText(report({ created: 3, events: 2 }))).toBe("Import 1 region and 2 events");
    expect(importButtonText(report({ restored: 1, events: 1 }))).toBe("Import 1 event");
    expect(countsOf(report({ created: 3, events: 2, unchanged: 1 }), true).map(({ text }) => text)).toEqual([
      "3 made",
      "2 of them events",
      "1 already here",
    ]);
  });

  it("counts features from one", () => {
    expect(placesText({ status: "refused", reason: "", count: 1, first: [0], shapes: ["Circle “a”"] })).toBe(
      "feature 1 (Circle “a”)",
    );
    expect(placesText({ status: "refused", reason: "", count: 9, first: [2, 4], shapes: ["", ""] })).toBe("features 3, 5 and 7 more");
  });

  it("says a reason to people", () => {
    expect(reasonText({ reason: "geometry: the outline has no area." })).toBe("the outline has no area.");
    expect(reasonText({ reason: "repaired: self-intersection" })).toBe("self-intersection");
    expect(reasonText({ reason: "class 'A': no such label" })).toBe("class 'A': no such label");
  });

  it("says what a class becomes", () => {
    const one = { name: "K", color: null, count: 1, label: null, label_name: "", problem: "" };
    expect(outcomeText({ ...one, outcome: "created" })).toBe("New label “K”");
    expect(outcomeText({ ...one, outcome: "refused" })).toBe("Leave its regions out");
    expect(outcomeText({ ...one, outcome: "known", label_name: "Tumor" })).toBe("Tumor");
  });

  it("tells progress and undo", () => {
    expect(progressText(0, 0, null)).toBe("Waiting for a worker…");
    expect(progressText(30, 120, null, "ROIs")).toBe("30 of 120 ROIs");
    expect(stageText({ stage: "undoing", name: "cells.geojson" })).toBe("Undoing cells.geojson");
    expect(stageText({ stage: "previewing", name: "" })).toBe("Reading the import");
    expect(progressText(3000, 12000, 8.6)).toBe("3,000 of 12,000 features · about 9 s left");
    expect(undoneText({ removed: 3, reverted: 1, skipped: 2 })).toBe(
      "Import undone: 3 removed, 1 as before, 2 changed since and kept.",
    );
  });

  it("draws rings whose x and y stand in turns", () => {
    expect(pathOfFlat([[0, 0, 9, 0, 9, 9]])).toBe("M0 0L9 0L9 9Z");
  });
});
