/** The frames of a video: identified by PTS and index together. */

import type { Schemas } from "../../api/schemas";
import { getJson, nextOf } from "../lib/http";
import type { CanvasVideo, FrameRef } from "../lib/types";

/** All frames in presentation order. */
export class FrameTable {
  constructor(
    readonly pts: number[],
    readonly timeBaseS: number,
    private readonly mediaOffsetS = 0,
  ) {}

  static async load(video: CanvasVideo): Promise<FrameTable> {
    const pts: number[] = [];
    let next: string | null = video.frames_url;
    while (next) {
      const page: Schemas["FramePage"] = await getJson<Schemas["FramePage"]>(next);
      for (const frame of page.frames) pts.push(frame.pts);
      next = nextOf(page);
    }
    return new FrameTable(pts, video.time_base_s, video.media_offset_s);
  }

  get length(): number {
    return this.pts.length;
  }

  clamp(index: number): number {
    return Math.min(Math.max(Math.round(index), 0), this.length - 1);
  }

  at(index: number): FrameRef {
    const pts = this.pts[index] ?? 0;
    return { index, pts, time_s: pts * this.timeBaseS };
  }

  /** Time of the media element at this frame. */
  mediaTime(index: number): number {
    return (this.pts[index] ?? 0) * this.timeBaseS - this.mediaOffsetS;
  }

  /** The frame whose PTS is nearest. */
  nearest(pts: number): number {
    let low = 0;
    let high = this.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.pts[middle] ?? 0) < pts) low = middle + 1;
      else high = middle;
    }
    const before = Math.max(low - 1, 0);
    const isBeforeNearer = pts - (this.pts[before] ?? 0) < (this.pts[low] ?? 0) - pts;
    return isBeforeNearer ? before : low;
  }

  nearestToMediaTime(seconds: number): number {
    return this.nearest((seconds + this.mediaOffsetS) / this.timeBaseS);
  }
}
