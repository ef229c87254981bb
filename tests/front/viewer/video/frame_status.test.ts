import { describe, expect, it } from "vitest";

import { FrameStatus, equalRuns } from "@/viewer/video/frame_status";

/** Five frames of which two are in the mosaic, on components 0 and 1. */
const STATUS = new FrameStatus({
  count: 5,
  time_base_s: 0.001,
  reasons: [
    { code: "", name: "in the mosaic", color: "#00aa00" },
    { code: "blurred", name: "blurred", color: "#aa0000" },
  ],
  index: [10, 11, 12, 13, 14],
  pts: [400, 440, 480, 520, 560],
  reason: [0, 1, 1, 0, 1],
  component: [0, null, null, 1, null],
  outline: [[0, 0, 30, 0, 30, 20, 0, 20], null, null, [5, 5, 35, 5, 35, 25, 5, 25], null],
});

describe("FrameStatus", () => {
  it("finds a frame by its PTS, and none outside of the span", () => {
    expect([400, 520, 521].map((pts) => STATUS.rowOf(pts))).toEqual([0, 3, null]);
  });

  it("knows why a frame is not in the mosaic", () => {
    expect([0, 1, 5].map((row) => STATUS.reason(row)?.code)).toEqual(["", "blurred", undefined]);
  });

  it("knows where a frame lies, by its corners on its component", () => {
    expect([STATUS.component(3), STATUS.component(1)]).toEqual([1, null]);
    expect(STATUS.outline(3)).toEqual([[5, 5], [35, 5], [35, 25], [5, 25]]);
    expect(STATUS.outline(1)).toBeNull();
  });

  it("paints runs of frames: those in the mosaic low, the others over the full height", () => {
    const painted: unknown[] = [];
    const context = {
      fillStyle: "",
      fillRect(x: number, y: number, width: number, height: number) {
        painted.push([this.fillStyle, x, y, width, height]);
      },
    };
    STATUS.paint(context as unknown as CanvasRenderingContext2D, 2, 10, (row) => row * 20);
    expect(painted).toEqual([
      ["#00aa00", 0, 6, 20, 6],
      ["#aa0000", 20, 2, 40, 10],
      ["#00aa00", 60, 6, 20, 6],
      ["#aa0000", 80, 2, 20, 10],
    ]);
  });
});

it("runs are stretches of equal values that follow each other without a gap", () => {
  expect(equalRuns([7, 7, 2, 2, 2, 7])).toEqual([
    { from: 0, to: 2 },
    { from: 2, to: 5 },
    { from: 5, to: 6 },
  ]);
  expect(equalRuns([])).toEqual([]);
});
