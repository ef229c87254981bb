import { describe, expect, it } from "vitest";

import { SpanEnds, estimateText } from "@/viewer/mosaic/span_ends";

describe("SpanEnds", () => {
  it("is the whole video until an end is set", () => {
    const ends = new SpanEnds();
    expect([ends.isSet, ends.indexRange(100)]).toEqual([false, [0, 99]]);
  });

  it("may be open at one end", () => {
    const ends = new SpanEnds();
    ends.begin(40);
    expect([ends.isSet, ends.indexRange(100)]).toEqual([true, [40, 99]]);
    ends.clear();
    ends.end(40);
    expect(ends.indexRange(100)).toEqual([0, 40]);
  });

  it("gives up the other end where it would lie on the wrong side", () => {
    const ends = new SpanEnds();
    ends.begin(10);
    ends.end(20);
    ends.begin(20);
    expect(ends.indexRange(100)).toEqual([20, 99]);
    ends.end(5);
    expect(ends.indexRange(100)).toEqual([0, 5]);
  });

  it("never ends before it begins", () => {
    const ends = new SpanEnds();
    for (let i = 0; i < 500; i += 1) {
      const index = (i * 37) % 100;
      if (i % 3) ends.begin(index);
      else ends.end(index);
      const [from, to] = ends.indexRange(100);
      expect(from).toBeLessThanOrEqual(to);
    }
  });
});

describe("estimateText", () => {
  it.each([
    [1200, null, "1,200 frames"],
    [1, 0.2, "1 frame, about 1 s"],
    [100, 89, "100 frames, about 89 s"],
    [100, 90, "100 frames, about 2 min"],
    [9000, 3600, "9,000 frames, about 60 min"],
  ])("%d frames, %d s", (frames, seconds, text) => {
    expect(estimateText(frames, seconds)).toBe(text);
  });
});
