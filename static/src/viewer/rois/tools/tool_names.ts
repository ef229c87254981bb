/** The tools, and what each may do. */

import type { DrawTool } from "../drawing/draw_interaction";
import type { MeasureTool } from "./measuring";

export type ToolName = "move" | "frames" | "select" | "search" | "brush" | "wand" | "outline" | "fixed" | "split" | "line" | "point" | DrawTool | MeasureTool;

const DRAW_TOOLS: ReadonlySet<ToolName> = new Set<DrawTool>(["rectangle", "ellipse", "polygon", "freehand"]);
/** Tools for users who may not edit as well. */
export const READ_ONLY_TOOLS: ReadonlySet<ToolName> = new Set<ToolName>(["move", "frames", "select", "search", "ruler", "angle"]);
/** A click selects. */
export const SELECTING_TOOLS: ReadonlySet<ToolName> = new Set<ToolName>(["move", "select"]);

export function isDrawTool(tool: ToolName): tool is DrawTool {
  return DRAW_TOOLS.has(tool);
}
