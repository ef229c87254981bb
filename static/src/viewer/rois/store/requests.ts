/** Request bodies of ROI changes. */

import type { Step } from "../../lib/saving/saved_state";
import type { RoiPatch, RoiStep } from "./api";
import type { RoiState } from "./roi_state";

/** Body of one ROI in a bulk request. */
export function bulkStepOf(state: RoiState): RoiStep {
  const { id, frame, server } = state;
  const step = state.nextStep ?? "update";
  if (step === "create") return { do: step, id, frame, ...state.currentFields() };
  const version = server?.version ?? 0;
  return step === "update" ? { do: step, id, version, ...state.patch() } : { do: step, id, version };
}

/** Fields sent by `bulkStepOf`. A restore sends none; further changes follow in the next request. */
export function sentFieldsOf(state: RoiState): RoiPatch {
  return state.nextStep === "restore" ? {} : state.patch();
}

/** Body of a single request. */
export function bodyOf(state: RoiState, step: Step): RoiPatch {
  if (step === "create") return state.currentFields();
  return step === "delete" ? {} : state.patch();
}
