/** Two versions of an ROI in the dialog of conflicts: both outlines are drawn on the map. */

import type { ConflictKind } from "../../lib/saving/conflicts";
import type { Choices, Side } from "../../lib/saving/merge";
import type { Roi } from "../../lib/types";
import { roiRevisions } from "../store/api";
import type { RoiFields } from "../store/api";
import type { RoiEdits } from "../store/edits";
import type { Labels } from "../store/labels";
import { ROI_MERGE } from "../store/merge";
import type { MergeField } from "../store/merge";
import { versionOf } from "../store/roi_state";
import type { RoiState, Version } from "../store/roi_state";
import type { MergeShapes } from "../rendering/merge_layer";
import { propertiesText } from "./properties";

/** Draws the two outlines on the map; null removes them. */
export type DrawMerge = (shown: MergeShapes | null, chosen: Side | null) => void;

const NAMES: Record<MergeField, string> = {
  deleted: "Kept or deleted",
  geometry: "Outline",
  track: "Key frames",
  label: "Label",
  name: "Name",
  description: "Description",
  properties: "Properties",
  locked: "Lock",
};

export function roiConflicts(edits: RoiEdits, labels: Labels, draw: DrawMerge): ConflictKind<RoiFields, Roi, RoiState, MergeField> {
  const text = (field: MergeField, version: Version, base: Version | null, side: Side): string => {
    if (field === "label") return labels.nameOf(version.label);
    if (field === "name") return version.name || "No name";
    if (field === "description") return version.description || "None";
    if (field === "properties") return propertiesText(version.properties) || "None";
    if (field === "deleted") return version.deleted ? "Deleted" : "Kept";
    if (field === "locked") return version.locked ? "Locked" : "Not locked";
    if (!base) return side === "mine" ? "This outline" : "Their outline";
    return ROI_MERGE.differingFields(base, version).includes("geometry") ? "Changed outline" : "As before";
  };
  return {
    ...{ noun: "region", merge: ROI_MERGE, versionOf, fieldNames: NAMES, text, revisions: roiRevisions, drawnField: "geometry" },
    textBefore: (field, base) => (field === "geometry" ? "dotted" : text(field, base, null, "mine")),
    save: (state, theirs, result) => edits.merge(state, theirs, result),
    note: ({ review_state }) => (review_state === "draft" ? "" : `It was ${review_state} in review. A new outline or label resets the review.`),
    draw: (conflict, { geometry }: Choices<MergeField>) => {
      if (!conflict) return draw(null, null);
      const { state, theirs, base } = conflict;
      draw({ mine: state.version.geometry, theirs: theirs.geometry, ...(base ? { base: base.geometry } : {}) }, geometry ?? null);
    },
  };
}
