import { expect, it } from "vitest";

import { windowText } from "@/viewer/rois/panel/roi_list";

it("says how many of those in view are drawn, where not all are", () => {
  expect(windowText(3000, 12345)).toBe("The largest 3,000 of 12,345 in view, tiny ones as dots. Zoom in for the others.");
  expect(windowText(7, 7)).toBe("Many regions: those in view are shown, tiny ones as dots.");
});
