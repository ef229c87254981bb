/** Copy and paste, on this canvas and between canvases: at the pointer, or in place with Shift. */

import { isTyping } from "../../../dom/focus";
import type { RoiCommands } from "./commands";
import { documentOf, readCopy } from "../saved/exchange_text";
import type { Labels } from "../saved/labels";
import type { RoiLayer } from "../shown/layer";
import { boundsOf, centreOf, moved } from "../shapes/outlines";
import type { Outlined } from "../saved/exchange_text";
import type { CanvasData, Position } from "../../lib/types";

interface Place {
  /** Under the pointer; null where it is not over the image. */
  pointer: () => Position | null;
  /** The middle of what is on screen. */
  centre: () => Position;
}

export function clipboard(
  canvas: CanvasData,
  labels: Labels,
  layer: RoiLayer,
  commands: RoiCommands,
  place: Place,
  tell: (text: string) => void,
): void {
  let inPlace = false; // a paste event does not tell of Shift
  addEventListener("keydown", (event) => (inPlace = event.shiftKey), { capture: true });
  document.addEventListener("copy", (event) => {
    const states = layer.selection;
    if (!states.length || isTyping(event.target) || hasSelectedText()) return;
    event.preventDefault();
    event.clipboardData?.setData("text/plain", JSON.stringify(documentOf(states, canvas, labels)));
    tell(states.length === 1 ? "ROI copied." : `${states.length} ROIs copied.`);
  });
  if (!canvas.can_annotate) return;
  document.addEventListener("paste", (event) => {
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    const copy = readCopy(event.clipboardData?.getData("text/plain") ?? "", canvas, labels);
    if (!copy) return tell("The clipboard holds no ROIs.");
    event.preventDefault();
    commands.paste(placed(copy.rois, canvas, inPlace ? null : place.pointer(), place.centre()));
    const number = copy.rois.length;
    tell(`${number === 1 ? "1 ROI" : `${number} ROIs`} pasted.`);
  });
}

const hasSelectedText = (): boolean => !(getSelection()?.isCollapsed ?? true);

/** In place, or their middle at a point; what would lie outside of the image comes to the middle of the view. */
export function placed(rois: Outlined[], canvas: CanvasData, at: Position | null, centre: Position): Outlined[] {
  const bounds = boundsOf(rois.map((roi) => roi.geometry));
  const isInside = bounds[0] < canvas.width && bounds[1] < canvas.height && bounds[2] > 0 && bounds[3] > 0;
  const to = at ?? (isInside ? null : centre);
  if (!to) return rois;
  const from = centreOf(bounds);
  const by: Position = [to[0] - from[0], to[1] - from[1]];
  return rois.map((roi) => ({ ...roi, geometry: moved(roi.geometry, by) }));
}
