import { expect, it } from "vitest";

import { mergeText, restoredText } from "@/app/label_texts";

it.each([
  [1, 0, "1 region was restored."],
  [2, 1, "2 regions were restored. 1 has been changed since then and stays as it is."],
  [0, 3, "0 regions were restored. 3 have been changed since then and stay as they are."],
])("says that %d were restored and %d kept", (reverted, skipped, text) => {
  expect(restoredText({ reverted, skipped })).toBe(text);
});

it.each([
  [1, 0, "1 region on 1 image of 2 cases will change."],
  [5, 1, "5 regions on 1 image of 2 cases will change. 1 of them is locked, and is relabelled too."],
  [5, 3, "5 regions on 1 image of 2 cases will change. 3 of them are locked, and are relabelled too."],
])("says beforehand that %d will change and %d are locked", (rois, locked, text) => {
  expect(mergeText({ id: null, rois, canvases: 1, cases: 2, locked })).toBe(text);
});
