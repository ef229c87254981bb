import { expect, it } from "vitest";

import { saveText } from "@/viewer/lib/saving/save_status";

it.each([
  ["saved", "", 0, "Saved"],
  ["saving", "", 1, "Saving…"],
  ["saving", "", 3, "Saving… (3)"],
  ["retry", "The server does not answer.", 1, "A change waits on this computer: The server does not answer."],
  ["refused", "The outline has no area.", 2, "2 changes wait on this computer: The outline has no area."],
  ["refused", "No.", 1, "A change was refused and waits on this computer: No."],
] as const)("%s: %s (%d waiting)", (status, message, pending, text) => {
  expect(saveText(status, message, pending)).toBe(text);
});
