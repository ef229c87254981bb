import { beforeEach, describe, expect, it, vi } from "vitest";

import { FrameImages, prefetchOrder } from "@/viewer/video/frame_images";

/** Of a frame of which just ten may stand ready. */
const TENTH = (256 * 2 ** 20) / 10;

describe("FrameImages", () => {
  let fetched: string[] = [];
  let closed = 0;

  beforeEach(() => {
    fetched = [];
    closed = 0;
    vi.stubGlobal("createImageBitmap", () => Promise.resolve({ width: 1, height: 1, close: () => (closed += 1) }));
    vi.stubGlobal("fetch", (url: string) => {
      fetched.push(url);
      return Promise.resolve(new Response("jpeg", { status: url.includes("404") ? 404 : 200 }));
    });
  });

  it("asks by PTS, and once for a frame that is kept", async () => {
    const images = new FrameImages("/frames/{pts}.jpg", TENTH);
    expect(await images.get(40)).toBe(await images.get(40));
    expect(fetched).toEqual(["/frames/40.jpg"]);
  });

  it("keeps few frames decoded and the others compressed: none is fetched twice", async () => {
    const images = new FrameImages("/frames/{pts}.jpg", TENTH);
    for (let pts = 0; pts < 30; pts += 1) images.shown = await images.get(pts);
    await vi.waitFor(() => expect([images.capacity, closed]).toEqual([10, 20]));
    await images.get(0);
    expect(fetched).toHaveLength(30);
  });

  it("never closes the frame on screen", async () => {
    const images = new FrameImages("/frames/{pts}.jpg", TENTH);
    let closedShown = false;
    const shown = await images.get(0);
    shown.close = () => (closedShown = true);
    images.shown = shown;
    for (let pts = 1; pts < 30; pts += 1) await images.get(pts);
    await vi.waitFor(() => expect([closedShown, closed]).toEqual([false, 19]));
  });

  it("makes ready what is said to come, in that order and two at a time", async () => {
    const answers: (() => void)[] = [];
    vi.stubGlobal("fetch", (url: string) => {
      fetched.push(url);
      return new Promise((resolve) => answers.push(() => resolve(new Response("jpeg"))));
    });
    const images = new FrameImages("{pts}", TENTH);
    images.prefetch([5, 6, 7, 8]);
    expect(fetched).toEqual(["5", "6"]);
    images.prefetch([6, 20, 21]); // the user went elsewhere: 7 and 8 are not wanted any more
    answers.forEach((answer) => answer());
    await vi.waitFor(() => expect(fetched).toEqual(["5", "6", "20", "21"]));
    expect(images.has(6)).toBe(true);
  });

  it("asks again for a frame that could not be read", async () => {
    const images = new FrameImages("/frames/{pts}.jpg", TENTH);
    for (let i = 0; i < 2; i += 1) {
      await expect(images.get(404)).rejects.toThrow("The frame could not be read (404).");
    }
    expect(fetched).toHaveLength(2);
  });
});

describe("around", () => {
  it("goes both ways, nearest first and mostly onwards", () => {
    expect(prefetchOrder(50, 1, 100, 10)).toEqual([51, 49, 52, 53, 54, 48, 55, 56, 60, 40]);
    expect(prefetchOrder(50, -1, 100, 10)).toEqual([49, 51, 48, 47, 46, 52, 45, 44, 40, 60]);
  });

  it("follows strides of ten, with the neighbours behind", () => {
    expect(prefetchOrder(50, 10, 100, 10)).toEqual([60, 40, 49, 70, 80, 90, 48, 51]);
    expect(prefetchOrder(50, -10, 100, 10).slice(0, 3)).toEqual([40, 60, 51]);
  });

  it("has both jumps ready after a single step, once the steps are", () => {
    const ready = prefetchOrder(200, 1, 400, 30);
    expect(ready).toEqual(expect.arrayContaining([210, 190, 220, 180]));
    expect(ready.length).toBeLessThanOrEqual(30);
  });

  it("stays within the video", () => {
    expect(prefetchOrder(0, 1, 3, 30)).toEqual([1, 2]);
    expect(prefetchOrder(2, 1, 3, 30)).toEqual([1, 0]);
  });
});
