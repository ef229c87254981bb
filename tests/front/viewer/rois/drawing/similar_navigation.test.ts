import { describe, expect, it } from "vitest";

import { ApiError } from "@/viewer/lib/http";
import type { SimilarRegions } from "@/viewer/rois/store/similar_regions";
import { SimilarNavigation, overlapShare } from "@/viewer/rois/drawing/similar_navigation";

type Box = [number, number, number, number];
const A: Box = [0, 0, 10, 10];
const B: Box = [20, 0, 30, 10];
const C: Box = [40, 0, 50, 10];
const ENCODER = {} as SimilarRegions["encoder"];
const ROI = { id: "roi-1", name: "Gland" };

const found = (...boxes: [Box, boolean | null][]): SimilarRegions => ({
  ...{ drawn_on: 0, tried: 0, total: 0, side_px: 10, encoder: ENCODER },
  regions: boxes.map(([bounds, is_close]) => ({ bounds, distance: 0.1, p_value: is_close === null ? null : 0.01, is_close })),
  looked_at: boxes.length,
});

function made(answers: SimilarRegions[]): { similar: SimilarNavigation; said: string[]; asked: string[] } {
  const [said, asked]: [string[], string[]] = [[], []];
  const similar = new SimilarNavigation((roi) => {
    asked.push(roi);
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    return answer ? Promise.resolve(answer) : Promise.reject(new ApiError(409, "no-tissue", "There is no tissue."));
  });
  similar.on("end", (why) => said.push(why));
  similar.on("failed", (text) => said.push(text));
  return { similar, said, asked };
}

describe("NextSimilar", () => {
  it("goes from the best to the next best, and back to none", async () => {
    const { similar, said, asked } = made([found([A, true], [B, true])]);
    expect(await similar.next(ROI)).toBe(true);
    expect(similar.place?.bounds).toEqual(A);
    expect(await similar.next(ROI)).toBe(true);
    expect([similar.place?.bounds, similar.at]).toEqual([B, 2]);
    expect(await similar.next(ROI)).toBe(false);
    expect(said).toEqual(["all-visited"]);
    expect(similar.place?.bounds).toEqual(B); // it stays
    expect(similar.back()).toBe(true);
    expect(similar.place?.bounds).toEqual(A);
    expect(await similar.next(ROI)).toBe(true); // on again, without asking
    expect(asked.length).toBe(3);
    expect([similar.back(), similar.back()]).toEqual([true, false]);
    expect([similar.place, similar.anchor]).toEqual([null, null]);
  });

  it("passes over what lies on a place that was shown, and what is drawn on meanwhile", async () => {
    const shifted: Box = [3, 0, 13, 10];
    const { similar } = made([found([A, true], [B, true], [C, true]), found([shifted, true], [C, true])]);
    await similar.next(ROI);
    await similar.next(ROI);
    expect(similar.place?.bounds).toEqual(C);
  });

  it("says that nothing is there or close, and shows the nearest to whoever wants it all the same", async () => {
    const far = made([found([A, false], [B, false])]);
    expect(await far.similar.next(ROI)).toBe(false);
    expect(far.said).toEqual(["far"]);
    expect(far.similar.place).toBeNull();
    expect(await far.similar.next(ROI, { includeDistant: true })).toBe(true);
    expect(await far.similar.next(ROI)).toBe(true); // asked for once
    expect(far.similar.place?.bounds).toEqual(B);
    const none = made([found()]);
    await none.similar.next(ROI);
    expect(none.said).toEqual(["none"]);
    const unknown = made([found([A, null])]); // an encoder that is not calibrated claims nothing
    expect(await unknown.similar.next(ROI)).toBe(true);
  });

  it("restarts with another ROI", async () => {
    const { similar, asked } = made([found([A, true], [B, true])]);
    await similar.next(ROI);
    await similar.next({ id: "roi-2", name: "" });
    expect([similar.place?.bounds, similar.at]).toEqual([A, 1]);
    expect(asked).toEqual(["roi-1", "roi-2"]);
  });

  it("tells what failed, and nothing of what was dismissed while it waited", async () => {
    const failing = made([]);
    expect(await failing.similar.next(ROI)).toBe(false);
    expect(failing.said).toEqual(["There is no tissue."]);
    expect(failing.similar.waiting).toBeNull();
    const { similar, said } = made([found([A, true])]);
    const going = similar.next(ROI);
    expect(similar.waiting).not.toBeNull();
    const second = similar.next(ROI); // one at a time
    expect(similar.dismiss()).toBe(true);
    expect(await Promise.all([going, second])).toEqual([false, false]);
    expect([similar.place, similar.waiting, said]).toEqual([null, null, []]);
    expect(similar.dismiss()).toBe(false);
  });
});

describe("over", () => {
  it("is the share of the smaller box that the other covers", () => {
    expect(overlapShare(A, B)).toBe(0);
    expect(overlapShare(A, [5, 0, 15, 10])).toBeCloseTo(0.5);
    expect(overlapShare([0, 0, 100, 100], A)).toBeCloseTo(1);
  });
});
