/** The read-outs around the image: scale bar, magnification, position of the pointer, rotation. */

import type { CanvasData, Position } from "../lib/types";
import { lengthText, magnificationText } from "../lib/units";
import type { MapView } from "./map_view";
import { l0FromMap } from "./pixel_plane";
import { presets } from "./magnification_buttons";
import { scaleBar } from "./scale_bar";

/** Fill the read-outs that the page contains. */
export function readouts(root: HTMLElement, mapView: MapView, canvas: CanvasData): void {
  const { map, view, target } = mapView;
  const at = (name: string): HTMLElement | null => root.querySelector(`[data-readout=${name}]`);
  const scale = at("scale");
  const zoom = at("zoom");
  const cursor = at("cursor");
  const rotation = at("rotation");
  const update = (): void => {
    if (zoom) zoom.textContent = magnificationText(view.getResolution() ?? 1, canvas.mpp_x);
    if (rotation) rotation.textContent = rotationText(view.getRotation());
  };
  const choice = at("presets");
  if (choice) presets(choice, mapView, canvas);
  if (scale) scaleBar(map, scale, canvas.mpp_x);
  view.on("change:resolution", update);
  view.on("change:rotation", update);
  map.on("pointermove", (event) => {
    if (cursor) cursor.textContent = cursorText(l0FromMap(event.coordinate), canvas);
  });
  target.addEventListener("pointerleave", () => {
    if (cursor) cursor.textContent = "";
  });
  update();
}

/** Rotation in whole degrees; empty if the image is upright. */
export function rotationText(radians: number): string {
  const degrees = Math.round((radians * 180) / Math.PI) % 360;
  return degrees ? `${degrees}°` : "";
}

/** The pixel under the pointer and its distance from the top left corner; empty off the image. */
export function cursorText([x, y]: Position, canvas: Pick<CanvasData, "width" | "height" | "mpp_x" | "mpp_y">): string {
  if (x < 0 || y < 0 || x >= canvas.width || y >= canvas.height) return "";
  const pixels = `${Math.floor(x).toLocaleString("en")}, ${Math.floor(y).toLocaleString("en")} px`;
  if (!canvas.mpp_x || !canvas.mpp_y) return pixels;
  return `${pixels}  (${lengthText(x * canvas.mpp_x)}, ${lengthText(y * canvas.mpp_y)})`;
}
