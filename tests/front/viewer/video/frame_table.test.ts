import { describe, expect, it, vi } from "vitest";

import { FrameTable } from "@/viewer/video/frame_table";
import type { CanvasVideo } from "@/viewer/lib/types";

/** Four frames of a clock of 1/90000 s, one of them long. The media element's clock begins 2 s later. */
const TABLE = new FrameTable([180_000, 183_600, 187_200, 270_000], 1 / 90_000, 2);

describe("FrameTable", () => {
  it("knows a frame by its index, its PTS and its time", () => {
    expect(TABLE.at(1)).toEqual({ index: 1, pts: 183_600, time_s: 183_600 / 90_000 });
  });

  it("keeps an index within the video", () => {
    expect([-5, 0.4, 2.6, 99].map((index) => TABLE.clamp(index))).toEqual([0, 0, 3, 3]);
  });

  it("tells the time of the media element, which leaves the offset out", () => {
    expect(TABLE.mediaTime(0)).toBeCloseTo(0, 12);
    expect(TABLE.mediaTime(3)).toBeCloseTo(1, 12);
  });

  it.each([
    [0, 0],
    [180_000, 0],
    [181_799, 0],
    [181_801, 1],
    [187_200, 2],
    [228_599, 2],
    [228_601, 3],
    [1e9, 3],
  ])("the frame nearest to PTS %d is %d", (pts, index) => {
    expect(TABLE.nearest(pts)).toBe(index);
  });

  it("finds the nearest as a search through all of them does", () => {
    const pts = Array.from({ length: 200 }, (_, i) => 7 * i * i + (i % 3));
    const table = new FrameTable(pts, 1);
    for (let wanted = -100; wanted < 290_000; wanted += 977) {
      const nearest = Math.min(...pts.map((each) => Math.abs(each - wanted)));
      expect(Math.abs((pts[table.nearest(wanted)] ?? NaN) - wanted)).toBe(nearest);
    }
  });

  it("comes back to the frame that the media element showed", () => {
    for (let index = 0; index < TABLE.length; index += 1) {
      expect(TABLE.nearestToMediaTime(TABLE.mediaTime(index))).toBe(index);
    }
  });

  it("is loaded page by page", async () => {
    const asked: string[] = [];
    vi.stubGlobal("location", new URL("https://portal.example/canvases/c1/"));
    vi.stubGlobal("fetch", (url: string) => {
      asked.push(url);
      const start = Number(new URL(url, "https://portal.example").searchParams.get("start"));
      const frames = Array.from({ length: Math.min(5000, 7000 - start) }, (_, i) => ({ pts: (start + i) * 40 }));
      const next = start ? null : "https://portal.example/frames/?start=5000&limit=5000";
      return Promise.resolve(Response.json({ frames, next }));
    });
    const video = { frames_url: "/frames/?limit=5000", time_base_s: 0.001, media_offset_s: 0 } as CanvasVideo;
    const table = await FrameTable.load(video);
    expect(asked).toEqual(["/frames/?limit=5000", "/frames/?start=5000&limit=5000"]);
    expect([table.length, table.at(6999).time_s]).toEqual([7000, 279.96]);
    expect(table.pts).toEqual([...table.pts].sort((a, b) => a - b));
  });
});
