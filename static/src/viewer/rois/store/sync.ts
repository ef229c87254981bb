/** Saving of ROIs: see `Autosave`. */

import { Autosave } from "../../lib/saving/autosave";
import type { Conflict as SaveConflict, SaveKind } from "../../lib/saving/autosave";
import type { Roi } from "../../lib/types";
import { roiCreate, roiDelete, roiGet, roiRestore, roisChange, roiUpdate } from "./api";
import type { RoiFields, RoiStep } from "./api";
import { ROI_MERGE } from "./merge";
import { bodyOf, bulkStepOf, sentFieldsOf } from "./requests";
import { versionOf } from "./roi_state";
import type { RoiState } from "./roi_state";

export type Conflict = SaveConflict<RoiFields, Roi, RoiState>;

const saveKindOf = (canvas: string): SaveKind<RoiFields, Roi, RoiState> => ({
  noun: "region",
  merge: ROI_MERGE,
  versionOf,
  bodyOf,
  create: (state, body, key) => roiCreate({ id: state.id, canvas, frame: state.frame, ...state.currentFields(), ...body }, key),
  update: roiUpdate,
  restore: roiRestore,
  remove: roiDelete,
  get: roiGet,
  refusals: ["roi-locked"],
  batch: { stepOf: bulkStepOf, sentFieldsOf, send: (steps, key) => roisChange(canvas, steps as RoiStep[], key) },
});

export class RoiSync extends Autosave<RoiFields, Roi, RoiState> {
  constructor(canvas: string, leaving?: AbortSignal) {
    super(saveKindOf(canvas), leaving);
  }
}
