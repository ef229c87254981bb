/** Saved, saving or not saved: always visible, and read out by screen readers when saving fails. */

import { required } from "../../dom/elements";
import type { RoiSync, SaveStatus } from "./sync";

const WORDS: Record<SaveStatus, string> = {
  saved: "Saved",
  saving: "Saving…",
  retry: "Not saved",
  refused: "Not saved",
  conflict: "Not saved",
};

/** What the status bar says; `pending` ROIs wait to be saved, and `message` is why they do. */
export function saveText(status: SaveStatus, message: string, pending: number): string {
  const count = pending > 1 && status !== "saved" ? ` (${pending})` : "";
  return `${WORDS[status]}${count}${message ? `: ${message}` : ""}`;
}

export function saveStatus(root: HTMLElement, sync: RoiSync, onConflict: () => void): void {
  const host = required(root, "[data-save-state]");
  const text = required(host, "[data-save-text]");
  const button = required<HTMLButtonElement>(host, "button");
  let now: SaveStatus = "saved";
  button.addEventListener("click", () => (now === "conflict" ? onConflict() : sync.retryNow()));
  sync.on("status", ({ status, message, pending }) => {
    now = status;
    host.dataset.saveState = status;
    const words = saveText(status, message, pending);
    if (text.textContent !== words) text.textContent = words;
    host.title = words;
    button.hidden = status === "saved" || status === "saving";
    button.textContent = status === "conflict" ? "Decide" : "Retry";
  });
}
