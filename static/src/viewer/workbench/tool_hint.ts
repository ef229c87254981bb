/** The hint over the image: the next step of the active tool. */

import { required } from "../../dom/elements";
import type { ToolName } from "../rois/tools/tool_names";
import type { Tools } from "../rois/tools/tools";

/** Hints by the number of points placed; the last one is for more points. */
const HINTS: Record<Exclude<ToolName, "move">, string[]> = {
  frames: ["Click a place to list the frames that saw it."],
  select: ["Drag a box around regions. Shift adds to the selection."],
  search: ["Drag a box to search with. It is not kept as a region."],
  rectangle: ["Drag from corner to corner."],
  ellipse: ["Drag from corner to corner."],
  polygon: ["Click the first corner.", "Click the next corner. Enter or a double click closes, Ctrl+Z takes one back."],
  freehand: ["Drag around the structure."],
  brush: ["Drag to paint. Alt erases, Shift adds to the selected region, [ and ] change the size."],
  wand: ["Click a colour; drag to the right for more. Alt erases."],
  outline: ["Click inside what is to be outlined."],
  fixed: ["Click to place; Enter places in the middle of the view. Esc leaves."],
  line: ["Drag, or click where the line begins.", "Click where the line ends."],
  point: ["Click each point. Enter begins others."],
  ruler: ["Drag, or click where to measure from.", "Click where to measure to."],
  angle: ["Drag a side up to the corner, or click the end of that side.", "Click the corner.", "Click the end of the other side."],
  split: ["Drag across the selected region, or click on one side of it.", "Click on the other side of the region."],
};

export function connectToolHint(root: HTMLElement, tools: Tools): void {
  const host = required(root, "[data-tool-hint]");
  tools.on("step", (placedCount) => {
    const texts = tools.current === "move" ? [] : HINTS[tools.current];
    host.hidden = texts.length === 0;
    host.textContent = texts[Math.min(placedCount, texts.length - 1)] ?? "";
  });
  tools.on("measured", (text) => (host.textContent = `${text}. Esc removes it. ${host.textContent}`));
}
