/** The look as an SVG filter, which the browser applies to the layers of the image; ROIs keep their colours. */

import { TO_DENSITY, TO_LIGHT, channelMatrix, isUnadjusted, isStain, stainMatrix, tone } from "./adjustments";
import type { ImageAdjustments } from "./adjustments";

const SVG = "http://www.w3.org/2000/svg";
/** viewer/adjustments.css names it. */
const FILTER_ID = "image-adjustments";

export class AdjustmentsFilter {
  private readonly filter = make("filter", { id: FILTER_ID, "color-interpolation-filters": "sRGB", x: "0", y: "0", width: "1", height: "1" });

  /** `stage` holds the layers. */
  constructor(private readonly stage: HTMLElement) {
    const host = make("svg", { width: "0", height: "0", "aria-hidden": "true", class: "adjustments-filter" });
    host.append(this.filter);
    stage.append(host);
  }

  show(adjustments: ImageAdjustments): void {
    this.filter.replaceChildren(...stepsOf(adjustments));
    this.stage.toggleAttribute("data-adjusted", !isUnadjusted(adjustments));
  }
}

function stepsOf(adjustments: ImageAdjustments): Element[] {
  const { shown } = adjustments;
  const steps: Element[] = [];
  if (isStain(shown)) steps.push(transfer(TO_DENSITY), mix(stainMatrix(shown)), transfer(TO_LIGHT));
  else if (shown !== "all") steps.push(mix(channelMatrix(shown)));
  return [...steps, transfer(tone(adjustments))];
}

function transfer(values: number[]): Element {
  const step = make("feComponentTransfer", {});
  const tableValues = values.map((value) => value.toFixed(4)).join(" ");
  step.append(...["R", "G", "B"].map((channel) => make(`feFunc${channel}`, { type: "table", tableValues })));
  return step;
}

function mix(rows: [number, number, number][]): Element {
  const values = [...rows.map((row) => `${row.map((value) => value.toFixed(6)).join(" ")} 0 0`), "0 0 0 1 0"].join(" ");
  return make("feColorMatrix", { type: "matrix", values });
}

function make(name: string, attributes: Record<string, string>): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
