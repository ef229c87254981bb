/** Status of each video frame in one mosaic, by PTS, painted as a strip. */

import type { Schemas } from "../../api/schemas";
import { element } from "../../dom/elements";
import type { Position } from "../lib/types";

/** Status of a frame; `code` is empty if the frame is in the mosaic. */
export type FrameReason = Schemas["FrameReason"];
/** All frames of a mosaic, in columns. */
export type FrameColumns = Schemas["FrameColumns"];

export class FrameStatus {
  private readonly at: Map<number, number>;

  constructor(readonly columns: FrameColumns) {
    this.at = new Map(columns.pts.map((pts, row) => [pts, row]));
  }

  get count(): number {
    return this.columns.count;
  }

  /** The frame's row in the columns, or null if the mosaic's span leaves it out. */
  rowOf(pts: number): number | null {
    return this.at.get(pts) ?? null;
  }

  reason(row: number): FrameReason | null {
    return this.columns.reasons[this.columns.reason[row] ?? -1] ?? null;
  }

  component(row: number): number | null {
    return this.columns.component[row] ?? null;
  }

  /** Corners of the frame's view on its component. */
  outline(row: number): Position[] | null {
    const flat = this.columns.outline[row];
    if (!flat) return null;
    const corners: Position[] = [];
    for (let i = 0; i + 1 < flat.length; i += 2) corners.push([flat[i] ?? 0, flat[i + 1] ?? 0]);
    return corners;
  }

  /** The reasons that occur, in the mosaic first. */
  legend(): HTMLElement[] {
    const used = new Set(this.columns.reason);
    return this.columns.reasons
      .filter((_, at) => used.has(at))
      .map(({ name, color }) => {
        const dot = element("span", { class: "legend-dot", "aria-hidden": "true" });
        dot.style.backgroundColor = color;
        return element("li", {}, dot, name);
      });
  }

  /**
   * Runs of equal colour along a canvas; frames that are in the mosaic low, those that are not over
   * the full height. `xOf` gives the left edge of the n-th frame of the columns, in pixels.
   */
  paint(context: CanvasRenderingContext2D, top: number, height: number, xOf: (row: number) => number): void {
    const { reason: column, reasons } = this.columns;
    for (const { from, to } of equalRuns(column)) {
      const reason = reasons[column[from] ?? 0];
      const left = xOf(from);
      const isIn = reason?.code === "";
      context.fillStyle = reason?.color ?? "#888888";
      context.fillRect(left, top + (isIn ? height * 0.4 : 0), Math.max(xOf(to) - left, 1), isIn ? height * 0.6 : height);
    }
  }
}

/** Stretches of equal values: `from` the first row of each up to `to`, which is not in it. */
export function equalRuns(values: number[]): { from: number; to: number }[] {
  const segments: { from: number; to: number }[] = [];
  values.forEach((value, row) => {
    const last = segments.at(-1);
    if (last && values[last.from] === value) last.to = row + 1;
    else segments.push({ from: row, to: row + 1 });
  });
  return segments;
}
