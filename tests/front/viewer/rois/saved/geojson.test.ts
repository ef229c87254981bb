import { expect, it } from "vitest";

import { importedText, undoneText } from "@/viewer/rois/saved/geojson";

const NOTHING = { created: 0, updated: 0, restored: 0, unchanged: 0, refused: 0, repaired: 0, id: null, items: [] };

it("counts what happened to the features, without what did not", () => {
  expect(importedText({ ...NOTHING, created: 3, repaired: 1 })).toBe("ROIs of the file: 3 created, 1 repaired.");
});

it("says so of an empty file", () => {
  expect(importedText(NOTHING)).toBe("ROIs of the file: none.");
});

it("gives the reason of the first that was refused, counted from one", () => {
  const items = [
    { index: 0, status: "created", reason: "" },
    { index: 4, status: "refused", reason: "The outline has no area." },
    { index: 6, status: "refused", reason: "Not a polygon." },
  ];
  const text = importedText({ ...NOTHING, created: 1, refused: 2, items });
  expect(text).toBe("ROIs of the file: 1 created, 2 refused. Feature 5: The outline has no area.");
});

it("says what an undone import took back, and what it left", () => {
  expect(undoneText({ removed: 3, reverted: 0, kept: 0 })).toBe("Import undone: 3 removed.");
  expect(undoneText({ removed: 3, reverted: 2, kept: 1 })).toBe("Import undone: 3 removed, 2 as before, 1 changed since and kept.");
});
