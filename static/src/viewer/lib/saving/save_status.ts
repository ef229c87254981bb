/** Save status: always visible, and announced to screen readers when saving fails. */

import { required } from "../../../dom/elements";
import type { SaveQueue, SaveStatus } from "./autosave";

const WORDS: Record<SaveStatus, string> = {
  saved: "Saved",
  saving: "Saving…",
  retry: "waits",
  refused: "was refused and waits",
  conflict: "needs your decision and waits",
};

/** Save status text; `pending` changes are unsaved for the reason `message`. */
export function saveText(status: SaveStatus, message: string, pending: number): string {
  if (status === "saved") return WORDS.saved;
  if (status === "saving") return pending > 1 ? `${WORDS.saving} (${pending})` : WORDS.saving;
  const waits = pending > 1 ? `${pending} changes wait` : `A change ${WORDS[status]}`;
  return `${waits} on this computer: ${message}`;
}

export interface SaveActions {
  onConflict: () => void;
  /** Open the list of pending changes. */
  onDetails: () => void;
}

export function saveStatus(root: HTMLElement, queue: SaveQueue, { onConflict, onDetails }: SaveActions): void {
  const host = required(root, "[data-save-state]");
  const text = required(host, "[data-save-text]");
  const button = required<HTMLButtonElement>(host, "[data-save-retry]");
  const details = required<HTMLButtonElement>(host, "[data-save-details]");
  details.addEventListener("click", onDetails);
  let now: SaveStatus = "saved";
  button.addEventListener("click", () => (now === "conflict" ? onConflict() : queue.retryNow()));
  queue.onStatus(({ status, message, pending }) => {
    now = status;
    host.dataset.saveState = status;
    const words = saveText(status, message, pending);
    if (text.textContent !== words) text.textContent = words;
    host.title = words;
    button.hidden = status === "saved" || status === "saving";
    details.hidden = button.hidden;
    button.textContent = status === "conflict" ? "Decide" : "Retry";
  });
}
