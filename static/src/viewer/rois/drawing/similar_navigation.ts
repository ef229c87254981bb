/** Navigation through places of a slide by similarity to an ROI. Events report changes. */

import { Emitter } from "../../lib/events";
import { ApiError } from "../../lib/http";
import type { Bounds } from "../shapes/outlines";
import type { Place, SimilarRegions, OnProgress } from "../store/similar_regions";

/** A place that overlaps an earlier one by more than this share counts as that one again. */
const SAME_PLACE = 0.25;

export interface Anchor {
  id: string;
  name: string;
}

/** Reason for the end: no place at all, all places visited, or the next one is not similar. */
export type EndReason = "none" | "all-visited" | "far";

interface NextSimilarEvents {
  /** `anchor`, `place` or `waiting` changed. */
  change: null;
  end: EndReason;
  failed: string;
}

export interface Waiting {
  isQueued: boolean;
  done: number;
  total: number;
}

export class SimilarNavigation extends Emitter<NextSimilarEvents> {
  /** The ROI that places are compared with; null before the first. */
  anchor: Anchor | null = null;
  waiting: Waiting | null = null;
  private visited: Place[] = [];
  private shown = 0;
  private asking: AbortController | null = null;

  constructor(private readonly ask: (roi: string, onProgress: OnProgress, signal: AbortSignal) => Promise<SimilarRegions>) {
    super();
  }

  /** The place shown. */
  get place(): Place | null {
    return this.visited[this.shown - 1] ?? null;
  }

  /** Number of the place shown, from 1. */
  get at(): number {
    return this.shown;
  }

  /** Go to the next place; another anchor restarts. Returns whether a place was found. */
  async next(anchor: Anchor, { includeDistant = false } = {}): Promise<boolean> {
    if (this.asking) return false;
    if (anchor.id !== this.anchor?.id) this.begin(anchor);
    if (this.shown < this.visited.length) return this.showNeighbour(1); // forward again after going back
    const asking = new AbortController();
    this.asking = asking;
    this.wait({ isQueued: false, done: 0, total: 0 });
    try {
      const regions = await this.ask(anchor.id, (waiting) => this.wait(waiting), asking.signal);
      if (this.asking !== asking) return false;
      this.asking = null;
      return this.visitNearest(regions, includeDistant);
    } catch (error) {
      if (this.asking !== asking) return false; // it was dismissed
      this.asking = null;
      if (!(error instanceof ApiError)) throw error;
      this.wait(null);
      this.emit("failed", error.message);
      return false;
    }
  }

  /** Go to the previous place; false, and no place is shown, if there is none. */
  back(): boolean {
    if (this.waiting || !this.shown) this.dismiss();
    else this.showNeighbour(-1);
    return this.place !== null;
  }

  /** Stop; true if a place was shown or awaited. */
  dismiss(): boolean {
    const wasThere = this.anchor !== null;
    this.asking?.abort();
    this.asking = null;
    this.anchor = this.waiting = null;
    this.visited = [];
    this.shown = 0;
    if (wasThere) this.emit("change", null);
    return wasThere;
  }

  private begin(anchor: Anchor): void {
    this.dismiss();
    this.anchor = anchor;
  }

  private showNeighbour(by: 1 | -1): boolean {
    this.shown += by;
    if (!this.shown) this.dismiss();
    else this.emit("change", null);
    return this.shown > 0;
  }

  private visitNearest({ regions }: SimilarRegions, includeDistant: boolean): boolean {
    const fresh = regions.filter(({ bounds }) => !this.visited.some((one) => overlapShare(one.bounds, bounds) > SAME_PLACE));
    const [place] = fresh;
    this.waiting = null;
    if (!place) return this.end(this.visited.length ? "all-visited" : "none");
    if (place.is_close === false && !includeDistant && !this.visited.some((one) => one.is_close === false)) return this.end("far");
    this.visited.push(place);
    return this.showNeighbour(1);
  }

  private end(reason: EndReason): false {
    this.emit("change", null);
    this.emit("end", reason);
    return false;
  }

  private wait(waiting: Waiting | null): void {
    this.waiting = waiting;
    this.emit("change", null);
  }
}

/** The share of the smaller of two boxes that the other one covers. */
export function overlapShare(a: Bounds, b: Bounds): number {
  const [width, height] = [0, 1].map((axis) => Math.min(a[axis + 2] ?? 0, b[axis + 2] ?? 0) - Math.max(a[axis] ?? 0, b[axis] ?? 0));
  const size = ([left, top, right, bottom]: Bounds): number => (right - left) * (bottom - top);
  return (Math.max(width ?? 0, 0) * Math.max(height ?? 0, 0)) / Math.max(Math.min(size(a), size(b)), 1e-9);
}
