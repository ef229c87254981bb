/**
 * Outlines that were begun and not finished. Esc cancels one, and undo brings it back, still open;
 * whoever takes another tool, goes to another frame or leaves the page finds it put aside and can go on with it.
 */

import { Emitter } from "../../lib/events";
import type { History } from "../../lib/history";
import type { Shelf } from "../../lib/shelf";
import { randomUuid } from "../../lib/uuid";
import type { FrameRef, Position } from "../../lib/types";
import type { DrawTool } from "./drawing";

export interface OpenOutline {
  id: string;
  /** Set so far, in level-0 pixels; where the pointer is does not count. */
  points: Position[];
  tool: DrawTool;
  frame: FrameRef | null;
}

/** What draws. */
export interface Pen {
  /** Draw on at the end of this outline. */
  goOn: (outline: OpenOutline) => void;
  /** Stop drawing, and give what was drawn so far. */
  lift: () => OpenOutline | null;
}

/** One point alone is no mark worth leaving on the map: undo brings it back as well. */
const POINTS_WORTH_KEEPING = 2;

export class OpenOutlines extends Emitter<{ change: OpenOutline[] }> {
  private readonly aside = new Map<string, OpenOutline>();
  private isResuming = false;

  constructor(
    private readonly pen: Pen,
    private readonly history: History,
    private readonly shelf: Shelf<OpenOutline>,
  ) {
    super();
  }

  /** What an earlier visit of the page left open, what was under the pen at a crash included. */
  async load(): Promise<void> {
    for (const { value } of await this.shelf.all()) {
      if (value.points.length >= POINTS_WORTH_KEEPING) this.aside.set(value.id, value);
    }
    this.told();
  }

  /** Those that are put aside, of one frame where there are frames. */
  ofFrame(frame: FrameRef | null): OpenOutline[] {
    return [...this.aside.values()].filter((outline) => outline.frame?.pts === frame?.pts);
  }

  get all(): OpenOutline[] {
    return [...this.aside.values()];
  }

  /** A point was set: a crash must not take it. */
  drawn(outline: OpenOutline): void {
    void this.shelf.put(outline.id, outline);
  }

  /** It has become an ROI, or nothing. */
  finished(id: string): void {
    void this.shelf.remove(id);
  }

  /** Esc: gone, unless it is undone. */
  cancelled(outline: OpenOutline): void {
    let gone = outline;
    this.forget(outline.id);
    this.history.record({
      label: "Cancel outline",
      undo: () => this.resume(gone),
      redo: () => {
        gone = this.lifted(gone);
        this.forget(gone.id);
      },
    });
  }

  /** Another tool, another frame. */
  left(outline: OpenOutline): void {
    if (outline.points.length < POINTS_WORTH_KEEPING) return this.cancelled(outline);
    let kept = outline;
    this.keep(kept);
    this.history.record({
      label: "Put outline aside",
      undo: () => this.resume(this.aside.get(kept.id) ?? kept),
      redo: () => {
        kept = this.lifted(kept);
        this.keep(kept);
      },
    });
  }

  /** Go on with the last one that was put aside on this frame. */
  resumeLast(frame: FrameRef | null): void {
    const last = this.ofFrame(frame).at(-1);
    if (last && !this.isResuming) this.resume(last);
  }

  resume(outline: OpenOutline): void {
    this.aside.delete(outline.id);
    this.told();
    this.drawn(outline);
    this.isResuming = true; // taking up the pen here is no wish for another outline
    this.pen.goOn(outline);
    this.isResuming = false;
  }

  /** Discard one that is put aside; undo puts it back. */
  discard(outline: OpenOutline): void {
    this.forget(outline.id);
    this.history.record({
      label: "Discard outline",
      undo: () => this.keep(outline),
      redo: () => this.forget(outline.id),
    });
  }

  private lifted(otherwise: OpenOutline): OpenOutline {
    return this.pen.lift() ?? otherwise;
  }

  private keep(outline: OpenOutline): void {
    this.aside.set(outline.id, outline);
    this.drawn(outline);
    this.told();
  }

  private forget(id: string): void {
    this.finished(id);
    if (this.aside.delete(id)) this.told();
  }

  private told(): void {
    this.emit("change", this.all);
  }
}

/** A new one; `points` are what is set. */
export function openOutline(given: Omit<OpenOutline, "id">): OpenOutline {
  return { id: randomUuid(), ...given };
}
