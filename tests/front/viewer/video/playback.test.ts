import { beforeEach, describe, expect, it } from "vitest";

import { FrameTable } from "@/viewer/video/frame_table";
import { Playback } from "@/viewer/video/playback";

const FRAME_S = 0.04;
const FRAMES = new FrameTable(Array.from({ length: 40 }, (_, index) => index * 40), 0.001);

type OnVideoFrame = (now: number, metadata: { mediaTime: number }) => void;

/** A media element whose frames come when the test says. */
class Media {
  seeking = false;
  sought: number[] = [];
  isPaused = true;
  private waiting: OnVideoFrame[] = [];
  private plays: (() => void)[] = [];
  private refusals: ((error: Error) => void)[] = [];

  set currentTime(seconds: number) {
    this.seeking = true;
    this.sought.push(Math.round(seconds / FRAME_S));
  }

  requestVideoFrameCallback(run: OnVideoFrame): void {
    this.waiting.push(run);
  }

  play(): Promise<void> {
    this.isPaused = false;
    return new Promise((resolve, reject) => {
      this.plays.push(resolve);
      this.refusals.push(reject);
    });
  }

  pause(): void {
    this.isPaused = true;
    for (const refuse of this.refusals.splice(0)) refuse(new DOMException("paused", "AbortError"));
  }

  begin(): void {
    this.refusals = [];
    for (const resolve of this.plays.splice(0)) resolve();
  }

  /** A frame is on screen; with `isThere`, where the last seek led. */
  frame(index: number, { isThere = false } = {}): number {
    if (isThere) this.seeking = false;
    const waiting = this.waiting.splice(0);
    for (const run of waiting) run(0, { mediaTime: index * FRAME_S });
    return waiting.length;
  }
}

let media: Media;
let shown: number[];
let playback: Playback;

async function started(index: number): Promise<boolean> {
  const start = playback.start(index);
  media.begin();
  return start;
}

beforeEach(() => {
  media = new Media();
  shown = [];
  playback = new Playback(media as unknown as HTMLVideoElement, FRAMES, (index) => shown.push(index));
});

describe("a span that plays over and over", () => {
  beforeEach(() => {
    playback.loop = [10, 20];
  });

  it("shows no frame outside of the span, however late the browser is", async () => {
    await started(15);
    media.frame(15, { isThere: true });
    media.frame(18);
    media.frame(25); // 19 to 24 were left out: the machine is busy
    media.frame(26); // under way to the first frame
    media.frame(10, { isThere: true });
    media.frame(20);
    media.frame(21);
    media.frame(11, { isThere: true });
    expect(shown).toEqual([15, 18, 10, 20, 11]);
    expect(media.sought).toEqual([15, 10, 10]); // one seek for each round
  });

  it("plays into the span where a seek lands just before it", async () => {
    await started(0);
    media.frame(9, { isThere: true });
    media.frame(10);
    expect([shown, media.sought]).toEqual([[10], [10]]);
  });

  it("goes to a span that was moved elsewhere", async () => {
    await started(10);
    media.frame(11, { isThere: true });
    playback.loop = [30, 39];
    media.frame(12);
    media.frame(30, { isThere: true });
    expect([shown, media.sought]).toEqual([[11, 30], [10, 30]]);
  });

  it("begins again at the end of the recording", async () => {
    expect(await started(10)).toBe(true);
    expect(playback.repeat()).toBe(true);
    expect(media.sought).toEqual([10, 10]);
    playback.loop = null;
    expect(playback.repeat()).toBe(false);
  });
});

describe("playing", () => {
  it("follows every frame to the end, from the start where it stood at the end", async () => {
    await started(39);
    for (const index of [0, 1, 39]) media.frame(index, { isThere: true });
    expect([shown, media.sought]).toEqual([[0, 1, 39], [0]]);
  });

  it("does not begin where it was stopped before", async () => {
    const start = playback.start(3);
    playback.stop();
    expect(await start).toBe(false);
    media.frame(3);
    expect([shown, media.isPaused]).toEqual([[], true]);
  });

  it("is followed once, however often it is started", async () => {
    await started(3);
    await started(4);
    media.frame(5);
    expect(shown).toEqual([5]);
    expect(media.frame(6)).toBe(1);
  });

  it("says where the browser cannot play the recording", async () => {
    const start = playback.start(3);
    media.pause(); // not by a stop of ours
    await expect(start).rejects.toThrow("paused");
  });
});
