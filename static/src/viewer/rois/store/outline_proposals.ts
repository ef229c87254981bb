/** Outlines that the server proposes around a click. */

import type { Schemas } from "../../../api/schemas";
import { API_ROOT, call } from "../../lib/http";
import type { FrameRef, Position } from "../../lib/types";

/** Outlines from the tightest to the widest; `likely` is the index of the one to show first. */
export type ProposedOutlines = Schemas["ProposedOutlines"];

export interface OutlineQuestion {
  at: Position;
  /** Visible bounds: left, top, right, bottom. */
  bounds: [number, number, number, number];
  frame: FrameRef | null;
}

export async function outlinesAt(canvas: string, { at: [x, y], bounds, frame }: OutlineQuestion, signal: AbortSignal): Promise<ProposedOutlines> {
  const body = { x, y, window: bounds, ...(frame ? { frame: { index: frame.index, pts: frame.pts } } : {}) };
  const answer = await call(`${API_ROOT}/canvases/${canvas}/outline/`, { method: "POST", body, signal });
  return (await answer.json()) as ProposedOutlines;
}
