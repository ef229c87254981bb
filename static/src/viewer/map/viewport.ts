/** The element in which a map draws. */

import type OlMap from "ol/Map";

export function viewportOf(map: OlMap): HTMLElement {
  const viewport: HTMLElement | undefined = map.getViewport();
  if (!viewport) throw new Error("the map has no viewport");
  return viewport;
}
