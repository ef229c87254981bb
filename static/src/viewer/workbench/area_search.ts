/** The search tool: a box that is searched with and never becomes an ROI. Its form opens the results. */

import { boundsFromExtent } from "../map/pixel_plane";
import type { Extent } from "ol/extent";
import type { Bounds } from "../rois/shapes/outlines";
import type { Tools } from "../rois/tools/tools";
import type { Parts } from "./parts";

/** A smaller box is a click, in screen pixels. */
const MIN_SCREEN_PX = 8;

export function connectSearch({ root, canvas, player, mapView, notice }: Parts, tools: Tools): void {
  const form = root.querySelector<HTMLFormElement>("[data-search-form]");
  if (!form) return; // another lab's image
  for (const button of root.querySelectorAll<HTMLElement>("[data-tool=search]")) button.hidden = false;
  form.querySelector("[data-search-area]")?.addEventListener("click", () => {
    form.closest("details")?.removeAttribute("open");
    tools.use("search");
  });
  const framePts = (): string => String(player?.frame?.pts ?? "");
  form.addEventListener("submit", () => (field(form, "frame_pts").value = framePts()));
  const ask = (extent: Extent): void => {
    const resolution = mapView.view.getResolution() ?? 1;
    const [left, top, right, bottom] = clipped(boundsFromExtent(extent), canvas);
    if (Math.min(right - left, bottom - top) < MIN_SCREEN_PX * resolution) {
      return notice.show("Too small to search with. Draw a larger box on the image.");
    }
    const ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]];
    field(form, "geometry").value = JSON.stringify({ type: "Polygon", coordinates: [ring] });
    field(form, "frame_pts").value = framePts();
    const source = Object.assign(document.createElement("input"), { type: "hidden", name: "source", value: "area" });
    form.append(source);
    notice.show("Searching…");
    tools.use("move");
    form.submit();
    source.remove(); // the browser may come back to this page
  };
  tools.on("search", ask);
}

const field = (form: HTMLFormElement, name: string): HTMLInputElement => form.elements.namedItem(name) as HTMLInputElement;

function clipped([left, top, right, bottom]: Bounds, { width, height }: { width: number; height: number }): Bounds {
  return [Math.max(left, 0), Math.max(top, 0), Math.min(right, width), Math.min(bottom, height)];
}
