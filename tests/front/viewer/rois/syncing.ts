import { RoiState } from "@/viewer/rois/saved/state";
import { RoiSync } from "@/viewer/rois/saved/sync";
import { square } from "./server";

/** The autosave of a canvas, and what it says of itself, without repetitions. */
export function syncing(): { sync: RoiSync; statuses: string[] } {
  const sync = new RoiSync("c1");
  const statuses: string[] = [];
  sync.on("status", ({ status }) => {
    if (statuses.at(-1) !== status) statuses.push(status);
  });
  return { sync, statuses };
}

/** An ROI that was just drawn here. */
export const drawn = (): RoiState => new RoiState("r1", null, { geometry: square(), label: "l1", name: "" });
