/** Texts about merging two labels. */

import type { Schemas } from "../api/schemas";

export type Merged = Schemas["LabelMerge"];
/** A merge that was taken back. */
export type Undone = Schemas["LabelMergeUndone"];

const countText = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`;

export function mergeText({ rois, canvases, cases, locked }: Merged): string {
  const also = locked === 1 ? " 1 of them is locked, and is relabelled too." : ` ${locked} of them are locked, and are relabelled too.`;
  return `${countText(rois, "region")} on ${countText(canvases, "image")} of ${countText(cases, "case")} will change.${locked ? also : ""}`;
}

export function restoredText({ reverted, skipped }: Undone): string {
  const others = skipped === 1 ? " 1 has been changed since then and stays as it is." : ` ${skipped} have been changed since then and stay as they are.`;
  return `${countText(reverted, "region")} ${reverted === 1 ? "was" : "were"} restored.${skipped ? others : ""}`;
}
