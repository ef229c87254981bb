/** The tools, and what each may do. */

import type { DrawTool } from "../sketch/drawing";
import type { MeasureTool } from "./measuring";

export type ToolName = "move" | "frames" | "select" | "search" | "brush" | "wand" | "outline" | "split" | "line" | "point" | DrawTool | MeasureTool;

const DRAWN: ReadonlySet<ToolName> = new Set<DrawTool>(["rectangle", "ellipse", "polygon", "freehand"]);
/** Also for those who may only look. */
export const FOR_ALL: ReadonlySet<ToolName> = new Set<ToolName>(["move", "frames", "select", "search", "ruler", "angle"]);
/** A click selects. */
export const SELECTING: ReadonlySet<ToolName> = new Set<ToolName>(["move", "select"]);

export function isDrawTool(tool: ToolName): tool is DrawTool {
  return DRAWN.has(tool);
}
