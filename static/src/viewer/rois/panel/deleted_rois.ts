/** The deleted ROIs of the canvas, each with a drawing. */

import { DeletedList } from "../../lib/saving/deleted_list";
import type { Roi } from "../../lib/types";
import { outlinePreview } from "../rendering/outline_preview";
import { roisDeleted } from "../store/api";
import type { RoiEdits } from "../store/edits";
import type { Labels } from "../store/labels";
import { RoiState } from "../store/roi_state";
import type { RoiStore } from "../store/roi_store";

export function deletedRois(
  host: HTMLElement,
  canvas: string,
  store: RoiStore,
  edits: RoiEdits,
  labels: Labels,
  goTo: (state: RoiState) => void,
): void {
  new DeletedList<Roi>(host, {
    load: () => roisDeleted(canvas),
    title: (roi) => roi.name || (roi.label ? labels.nameOf(roi.label) : "Unnamed region"),
    picture: (roi) => outlinePreview(roi.geometry, labels.colorOf(roi.label), null),
    restore: (roi) => {
      const state = store.get(roi.id) ?? RoiState.fromServer(roi);
      edits.restore(state);
      goTo(state);
    },
    onSaved: (run) => store.sync.on("status", ({ status }) => status === "saved" && run()),
  });
}
