import { describe, expect, it } from "vitest";

import { pictureAt } from "@/viewer/video/filmstrip";

describe("pictureAt", () => {
  it.each([
    [0, 0],
    [0.5, 15],
    [1, 29],
    [-1, 0],
    [2, 29],
  ])("shows at %d of the video the picture %d of thirty", (share, picture) => {
    expect(pictureAt(share, 30)).toBe(picture);
  });

  it("has one picture of a video of one frame", () => {
    expect(pictureAt(0.7, 1)).toBe(0);
  });
});
