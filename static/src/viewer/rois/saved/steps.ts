/** What is sent of an ROI, by what has to be done on the server. */

import type { RoiPatch, RoiStep } from "./api";
import type { Attempt, RoiState, Step } from "./state";

/** What is sent of it together with others. */
export function stepOf(state: RoiState): RoiStep {
  const { id, frame, server } = state;
  const step = state.nextStep ?? "update";
  if (step === "create") return { do: step, id, frame, ...state.wanted() };
  const version = server?.version ?? 0;
  return step === "update" ? { do: step, id, version, ...state.patch() } : { do: step, id, version };
}

/** What of it goes with `stepOf`: an ROI is brought back as it was, and what changed on the way is sent afterwards. */
export function sentOf(state: RoiState): RoiPatch {
  return state.nextStep === "restore" ? {} : state.patch();
}

/** What is sent of it by itself. */
export function bodyOf(state: RoiState, step: Step): Attempt["body"] {
  if (step === "create") return state.wanted();
  return step === "delete" ? {} : state.patch();
}
