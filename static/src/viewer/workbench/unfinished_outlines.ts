/** Connects unfinished outlines with the tools, the map and the notices. */

import { UnfinishedOutlines } from "../rois/drawing/unfinished_outlines";
import type { UnfinishedOutline } from "../rois/drawing/unfinished_outlines";
import { UnfinishedOutlinesLayer } from "../rois/drawing/unfinished_outlines_layer";
import type { Tools } from "../rois/tools/tools";
import type { Parts } from "./parts";

export function connectUnfinishedOutlines(parts: Parts, tools: Tools): UnfinishedOutlines {
  const { draftStorage, history, mapView, notice, player } = parts;
  const outlines = new UnfinishedOutlines(tools, history, draftStorage.shelf<UnfinishedOutline>("outline"));
  const shown = new UnfinishedOutlinesLayer();
  mapView.map.addLayer(shown.layer);
  const show = (): void => shown.show(outlines.ofFrame(player?.frame ?? null));
  outlines.on("change", show);
  tools.on("drawn", (outline) => outlines.handlePoint(outline));
  tools.on("ended", (id) => outlines.handleEnd(id));
  tools.on("cancelled", (outline) => {
    outlines.cancel(outline);
    notice.show("Outline cancelled.", { label: "Go on", run: () => outlines.resume(outline) });
  });
  tools.on("left", (outline) => {
    outlines.putAside(outline);
    notice.show("The outline is kept. P continues it.", { label: "Go on", run: () => outlines.resume(outline) });
  });
  tools.on("tool", (tool) => {
    if (tool === "polygon") outlines.resumeLast(player?.frame ?? null);
  });
  player?.on("frame", () => {
    tools.handleFrameChange();
    show();
  });
  return outlines;
}
