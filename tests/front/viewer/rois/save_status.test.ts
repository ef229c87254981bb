import { expect, it } from "vitest";

import { saveText } from "@/viewer/rois/save_status";

it.each([
  ["saved", "", 0, "Saved"],
  ["saving", "", 1, "Saving…"],
  ["saving", "", 3, "Saving… (3)"],
  ["retry", "The server does not answer.", 1, "Not saved: The server does not answer."],
  ["refused", "The outline has no area.", 2, "Not saved (2): The outline has no area."],
] as const)("%s: %s (%d waiting)", (status, message, pending, text) => {
  expect(saveText(status, message, pending)).toBe(text);
});
