/** Copy and paste, on this canvas and between canvases: at the pointer, or in place with Shift. */

import { isTyping } from "../../../dom/focus";
import type { RoiCommands } from "./commands";
import { featureCollectionOf, parseCopiedRois } from "../store/geojson_text";
import type { Labels } from "../store/labels";
import type { RoiLayer } from "../rendering/roi_layer";
import { boundsOf, centreOf, translated } from "../shapes/outlines";
import type { OutlineFields } from "../store/geojson_text";
import type { CanvasData, Position } from "../../lib/types";

interface Place {
  /** Under the pointer; null if it is not over the image. */
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
  showNotice: (text: string) => void,
  leaving: AbortSignal,
): void {
  let inPlace = false; // a paste event has no shiftKey
  addEventListener("keydown", (event) => (inPlace = event.shiftKey), { capture: true, signal: leaving });
  document.addEventListener("copy", (event) => {
    const states = layer.selection;
    if (!states.length || isTyping(event.target) || hasSelectedText()) return;
    event.preventDefault();
    event.clipboardData?.setData("text/plain", JSON.stringify(featureCollectionOf(states, canvas, labels)));
    showNotice(states.length === 1 ? "Region copied." : `${states.length} regions copied.`);
  }, { signal: leaving });
  if (!canvas.can_annotate) return;
  document.addEventListener("paste", (event) => {
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    const copy = parseCopiedRois(event.clipboardData?.getData("text/plain") ?? "", canvas, labels);
    if (!copy) return showNotice("The clipboard holds no regions.");
    event.preventDefault();
    commands.paste(placeOutlines(copy.rois, canvas, inPlace ? null : place.pointer(), place.centre()));
    const number = copy.rois.length;
    showNotice(`${number === 1 ? "1 region" : `${number} regions`} pasted.`);
  }, { signal: leaving });
}

const hasSelectedText = (): boolean => !(getSelection()?.isCollapsed ?? true);

/** Outlines in place, or centred at a point; at the centre of the view if they would be outside the image. */
export function placeOutlines(rois: OutlineFields[], canvas: CanvasData, at: Position | null, centre: Position): OutlineFields[] {
  const bounds = boundsOf(rois.map((roi) => roi.geometry));
  const isInside = bounds[0] < canvas.width && bounds[1] < canvas.height && bounds[2] > 0 && bounds[3] > 0;
  const to = at ?? (isInside ? null : centre);
  if (!to) return rois;
  const from = centreOf(bounds);
  const by: Position = [to[0] - from[0], to[1] - from[1]];
  return rois.map((roi) => ({ ...roi, geometry: translated(roi.geometry, by) }));
}
