/** Unsaved changes of ROIs in the dialog of pending changes. */

import { changeText } from "../../lib/saving/pending_changes";
import type { PendingChange } from "../../lib/saving/pending_changes";
import type { RoiEdits } from "../store/edits";
import type { Labels } from "../store/labels";
import { ROI_MERGE } from "../store/merge";
import type { MergeField } from "../store/merge";
import { versionOf } from "../store/roi_state";
import type { RoiState } from "../store/roi_state";
import type { RoiStore } from "../store/roi_store";

const FIELD_NAMES: Record<MergeField, string> = {
  ...{ deleted: "deletion", geometry: "outline", track: "key frames", label: "label" },
  ...{ name: "name", locked: "lock", description: "description", properties: "properties" },
};

export function roiChangeText({ server, deleted, version }: RoiState): string {
  const changed = server ? ROI_MERGE.differingFields(version, versionOf(server)) : [];
  return changeText("region", FIELD_NAMES, { server, deleted, changed });
}

export function pendingRois({ sync }: RoiStore, edits: RoiEdits, labels: Labels): PendingChange[] {
  return sync.waiting.map((state) => ({
    title: state.name || (state.label ? labels.nameOf(state.label) : "Unnamed region"),
    text: roiChangeText(state),
    problem: state.problem,
    discard: () => edits.discard(state),
  }));
}
