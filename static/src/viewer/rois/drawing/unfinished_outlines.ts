/**
 * Unfinished outlines. Esc cancels one, and undo restores it, still open. Choosing another tool, going to another frame
 * or leaving the page sets it aside, to be continued later.
 */

import { Emitter } from "../../lib/events";
import type { History } from "../../lib/history";
import type { DraftShelf } from "../../lib/draft_storage";
import { randomUuid } from "../../lib/uuid";
import type { FrameRef, Position } from "../../lib/types";
import type { DrawTool } from "./draw_interaction";

export interface UnfinishedOutline {
  id: string;
  /** Set points in level-0 pixels, without the pointer's position. */
  points: Position[];
  tool: DrawTool;
  frame: FrameRef | null;
}

/** Drawing tool that can resume and stop an outline. */
export interface OutlinePen {
  /** Draw on at the end of this outline. */
  resume: (outline: UnfinishedOutline) => void;
  /** Stop drawing, and give what was drawn so far. */
  stopDrawing: () => UnfinishedOutline | null;
}

/** A single point is not kept on the map; undo restores it as well. */
const POINTS_WORTH_KEEPING = 2;

export class UnfinishedOutlines extends Emitter<{ change: UnfinishedOutline[] }> {
  private readonly setAside = new Map<string, UnfinishedOutline>();
  private isResuming = false;

  constructor(
    private readonly pen: OutlinePen,
    private readonly history: History,
    private readonly shelf: DraftShelf<UnfinishedOutline>,
  ) {
    super();
  }

  /** Load outlines left unfinished by an earlier visit, also after a crash. */
  async load(): Promise<void> {
    for (const { value } of await this.shelf.getAll()) {
      if (value.points.length >= POINTS_WORTH_KEEPING) this.setAside.set(value.id, value);
    }
    this.onProgress();
  }

  /** Unfinished outlines of a frame, or of an image without frames. */
  ofFrame(frame: FrameRef | null): UnfinishedOutline[] {
    return [...this.setAside.values()].filter((outline) => outline.frame?.pts === frame?.pts);
  }

  get all(): UnfinishedOutline[] {
    return [...this.setAside.values()];
  }

  /** Store an outline after each point, so that a crash does not lose it. */
  handlePoint(outline: UnfinishedOutline): void {
    void this.shelf.put(outline.id, outline);
  }

  /** The outline became an ROI or was discarded. */
  handleEnd(id: string): void {
    void this.shelf.remove(id);
  }

  /** Discard the outline on Esc; undo restores it. */
  cancel(outline: UnfinishedOutline): void {
    let removed = outline;
    this.forget(outline.id);
    this.history.record({
      label: "Cancel outline",
      undo: () => this.resume(removed),
      redo: () => {
        removed = this.stopOr(removed);
        this.forget(removed.id);
      },
    });
  }

  /** Set the outline aside for another tool or frame. */
  putAside(outline: UnfinishedOutline): void {
    if (outline.points.length < POINTS_WORTH_KEEPING) return this.cancel(outline);
    let stored = outline;
    this.keep(stored);
    this.history.record({
      label: "Put outline aside",
      undo: () => this.resume(this.setAside.get(stored.id) ?? stored),
      redo: () => {
        stored = this.stopOr(stored);
        this.keep(stored);
      },
    });
  }

  /** Continue the outline on this frame that was set aside last. */
  resumeLast(frame: FrameRef | null): void {
    const last = this.ofFrame(frame).at(-1);
    if (last && !this.isResuming) this.resume(last);
  }

  resume(outline: UnfinishedOutline): void {
    this.setAside.delete(outline.id);
    this.onProgress();
    this.handlePoint(outline);
    this.isResuming = true; // activating the tool here must not start another outline
    this.pen.resume(outline);
    this.isResuming = false;
  }

  /** Discard an outline that was set aside; undo restores it. */
  discard(outline: UnfinishedOutline): void {
    this.forget(outline.id);
    this.history.record({
      label: "Discard outline",
      undo: () => this.keep(outline),
      redo: () => this.forget(outline.id),
    });
  }

  private stopOr(otherwise: UnfinishedOutline): UnfinishedOutline {
    return this.pen.stopDrawing() ?? otherwise;
  }

  private keep(outline: UnfinishedOutline): void {
    this.setAside.set(outline.id, outline);
    this.handlePoint(outline);
    this.onProgress();
  }

  private forget(id: string): void {
    this.handleEnd(id);
    if (this.setAside.delete(id)) this.onProgress();
  }

  private onProgress(): void {
    this.emit("change", this.all);
  }
}

/** Create an outline with these points. */
export function newUnfinishedOutline(fields: Omit<UnfinishedOutline, "id">): UnfinishedOutline {
  return { id: randomUuid(), ...fields };
}
