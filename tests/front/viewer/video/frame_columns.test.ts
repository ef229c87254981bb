import { expect, it } from "vitest";

import { runs } from "@/viewer/video/frame_columns";

it("runs are stretches of equal values that follow each other without a gap", () => {
  expect(runs([7, 7, 2, 2, 2, 7])).toEqual([
    { from: 0, to: 2 },
    { from: 2, to: 5 },
    { from: 5, to: 6 },
  ]);
  expect(runs([])).toEqual([]);
});
