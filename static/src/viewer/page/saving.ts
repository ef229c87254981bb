/** The state of saving in the head, what waits, what was deleted, and the merge of two versions on the map. */

import { Conflicts } from "../rois/panel/conflicts";
import { DeletedRois } from "../rois/panel/deleted";
import { MergeLayer } from "../rois/shown/merge_layer";
import { saveStatus } from "../rois/panel/save_status";
import { WaitingChanges } from "../rois/panel/waiting";
import { showRoi } from "./links";
import type { Parts } from "./parts";

export function connectSaving(parts: Parts): void {
  const { root, canvas, store, edits, labels, layer, mapView } = parts;
  const outlines = new MergeLayer();
  mapView.map.addLayer(outlines.layer);
  let isShown = false;
  const conflicts = new Conflicts(root, store, edits, labels, (shown, chosen) => {
    outlines.show(shown ?? {}, chosen);
    const extent = outlines.extent();
    if (extent && !isShown) {
      layer.select(null); // its handles would lie over both outlines
      mapView.zoomTo(extent);
    }
    isShown = shown !== null;
  });
  const waiting = new WaitingChanges(root, store.sync, edits, labels);
  saveStatus(root, store.sync, { onConflict: () => conflicts.open(), onDetails: () => waiting.open() });
  const deleted = root.querySelector<HTMLElement>("[data-roi-deleted]");
  if (deleted) new DeletedRois(deleted, canvas.id, store, edits, labels, (state) => void showRoi(state, parts));
}
