/** Magnifications at a click, for images whose pixel size is known. */

import { element } from "../../dom/elements";
import { magnificationOf } from "../lib/units";
import type { CanvasData } from "../lib/types";
import type { MapView } from "./map_view";

/** What the objectives of a microscope and the levels of scanners offer. */
export const MAGNIFICATIONS = [1, 2.5, 5, 10, 20, 40];
/** A magnification this near to a preset, as a share of it, is that preset. */
const SAME = 0.02;

/** The preset that a magnification is, if it is one. */
export function presetAt(magnification: number): number | null {
  return MAGNIFICATIONS.find((power) => Math.abs(magnification - power) < SAME * power) ?? null;
}

export function presets(host: HTMLElement, mapView: MapView, canvas: Pick<CanvasData, "mpp_x">): void {
  const mpp = canvas.mpp_x;
  if (!mpp) return;
  const buttons = MAGNIFICATIONS.map((power) =>
    element("button", { type: "button", class: "preset", click: () => mapView.magnify(power) }, `${power}×`));
  host.replaceChildren(...buttons);
  host.hidden = false;
  const update = (): void => {
    const now = presetAt(magnificationOf(mapView.view.getResolution() ?? 1, mpp));
    for (const [i, button] of buttons.entries()) button.setAttribute("aria-pressed", String(MAGNIFICATIONS[i] === now));
  };
  mapView.view.on("change:resolution", update);
  update();
}
