import { expect, it } from "vitest";

import { clipProgressText } from "@/viewer/video/clip";

it.each([
  ["queued", 0, 0, "Waiting for a worker…"],
  ["running", 0, 0, "Writing…"],
  ["running", 12, 300, "Writing… frame 12 of 300"],
] as const)("%s, %d of %d: %s", (state, done, total, text) => {
  expect(clipProgressText({ state, progress: { done, total, phase: "transcoding" } as never })).toBe(text);
});
