/** The save status in the header, pending changes, deleted objects, and the merge of two versions on the map. */

import { Conflicts } from "../lib/saving/conflicts";
import { PendingChanges } from "../lib/saving/pending_changes";
import { saveStatus } from "../lib/saving/save_status";
import { deletedRois } from "../rois/panel/deleted_rois";
import { roiConflicts } from "../rois/panel/roi_conflicts";
import { pendingRois } from "../rois/panel/roi_pending_changes";
import { MergeLayer } from "../rois/rendering/merge_layer";
import { eventConflicts, pendingEvents } from "../video/events/event_store";
import { jumpToRoi } from "./links";
import type { Parts } from "./parts";

export function connectSaving(parts: Parts): void {
  const { root, canvas, store, edits, events, saving, labels, layer, mapView } = parts;
  const outlines = new MergeLayer();
  mapView.map.addLayer(outlines.layer);
  let isShown = false;
  const conflicts = new Conflicts(root);
  conflicts.listen(store.sync, roiConflicts(edits, labels, (shown, chosen) => {
    outlines.show(shown ?? {}, chosen);
    const extent = outlines.extent();
    if (extent && !isShown) {
      layer.select(null); // its handles would lie over both outlines
      mapView.zoomTo(extent);
    }
    isShown = shown !== null;
  }));
  if (events) conflicts.listen(events.store.sync, eventConflicts(events.edits));
  const pending = new PendingChanges(root, saving, () => [
    ...pendingRois(store, edits, labels),
    ...(events ? pendingEvents(events.store, events.edits) : []),
  ]);
  saveStatus(root, saving, { onConflict: () => conflicts.open(), onDetails: () => pending.open() });
  const deleted = root.querySelector<HTMLElement>("[data-roi-deleted]");
  if (deleted) deletedRois(deleted, canvas.id, store, edits, labels, (state) => jumpToRoi(state, parts));
}
