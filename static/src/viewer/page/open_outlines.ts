/** What becomes of an outline that is left unfinished, connected to the pen, the map and the notices. */

import { OpenOutlines } from "../rois/sketch/open_outlines";
import type { OpenOutline } from "../rois/sketch/open_outlines";
import { OpenOutlinesLayer } from "../rois/sketch/open_outlines_layer";
import type { Tools } from "../rois/tools/tools";
import type { Parts } from "./parts";

export function connectOpenOutlines(parts: Parts, tools: Tools): OpenOutlines {
  const { cupboard, history, mapView, notice, player } = parts;
  const outlines = new OpenOutlines(tools, history, cupboard.shelf<OpenOutline>("outline"));
  const shown = new OpenOutlinesLayer();
  mapView.map.addLayer(shown.layer);
  const show = (): void => shown.show(outlines.ofFrame(player?.frame ?? null));
  outlines.on("change", show);
  tools.on("drawn", (outline) => outlines.drawn(outline));
  tools.on("ended", (id) => outlines.finished(id));
  tools.on("cancelled", (outline) => {
    outlines.cancelled(outline);
    notice.show("Outline cancelled.", { label: "Go on", run: () => outlines.resume(outline) });
  });
  tools.on("left", (outline) => {
    outlines.left(outline);
    notice.show("The outline is kept. P continues it.", { label: "Go on", run: () => outlines.resume(outline) });
  });
  tools.on("tool", (tool) => {
    if (tool === "polygon") outlines.resumeLast(player?.frame ?? null);
  });
  player?.on("frame", () => {
    tools.frameChanged();
    show();
  });
  return outlines;
}
