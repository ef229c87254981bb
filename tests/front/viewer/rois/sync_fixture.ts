import { RoiState } from "@/viewer/rois/store/roi_state";
import { RoiSync } from "@/viewer/rois/store/sync";
import { square } from "./fake_server";

/** The autosave of a canvas, and what it says of itself, without repetitions. */
export function syncing(leaving?: AbortSignal): { sync: RoiSync; statuses: string[] } {
  const sync = new RoiSync("c1", leaving);
  const statuses: string[] = [];
  sync.on("status", ({ status }) => {
    if (statuses.at(-1) !== status) statuses.push(status);
  });
  return { sync, statuses };
}

/** An ROI that was just drawn here. */
export const drawn = (): RoiState => new RoiState("r1", null, { geometry: square(), label: "l1", name: "" });
