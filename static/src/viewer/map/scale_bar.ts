/** A scale bar of a round length in µm, mm or cm, or in pixels where the scale is unknown. */

import type OlMap from "ol/Map";

import { lengthText, roundStep } from "../lib/units";

/** The longest the bar may be on screen. */
const LONGEST_PX = 160;

export function scaleBar(map: OlMap, host: HTMLElement, mpp: number | null): void {
  const bar = document.createElement("div");
  const text = document.createElement("span");
  bar.className = "scale-bar-line";
  text.className = "scale-bar-text";
  host.append(text, bar);
  const update = (): void => {
    const resolution = map.getView().getResolution();
    if (!resolution) return;
    const unitsPerScreenPx = resolution * (mpp ?? 1);
    const length = roundStep(LONGEST_PX * unitsPerScreenPx);
    bar.style.width = `${length / unitsPerScreenPx}px`;
    text.textContent = mpp ? lengthText(length) : `${length.toLocaleString("en")} px`;
    host.title = mpp ? "" : "The scale of this image is unknown: lengths are in pixels";
  };
  map.getView().on("change:resolution", update);
  update();
}
