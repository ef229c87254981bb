/** Magnifications at a click, for images whose pixel size is known. */

import { element } from "../../dom/elements";
import { magnificationOf } from "../lib/units";
import type { CanvasData } from "../lib/types";
import { MAGNIFICATIONS, presetAt } from "./magnifications";
import type { MapView } from "./map_view";

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
