/** The dialog that says how a slide is stained. */

import type { Schemas } from "../../api/schemas";
import { required } from "../../dom/elements";
import { API_ROOT, ApiError, call } from "../lib/http";

/** Does nothing if the page lacks the dialog: no slide, or this person may not change it. */
export function connectStain(root: HTMLElement): void {
  const dialog = root.querySelector<HTMLDialogElement>("[data-dialog=stain]");
  if (!dialog) return;
  const opener = required(root, "[data-stain-open]");
  const input = required<HTMLInputElement>(dialog, "[data-stain]");
  const problem = required(dialog, "[data-stain-problem]");
  const url = `${API_ROOT}/slides/${dialog.dataset.slide ?? ""}/`;
  let tag = dialog.dataset.tag ?? ""; // ETag of the page's state, so that a newer stain is not overwritten
  let saved = input.value;
  const save = async (): Promise<void> => {
    try {
      const answer = await call(url, { method: "PATCH", body: { stain: input.value }, ifMatch: tag });
      tag = answer.headers.get("ETag")?.replace(/^W\//, "").replaceAll('"', "") ?? tag;
      saved = ((await answer.json()) as Schemas["Slide"]).stain;
      opener.textContent = saved ? `${saved}…` : "Stain unknown: set it…";
      dialog.close();
    } catch (error) {
      problem.textContent = problemText(error);
      problem.hidden = false;
    }
  };
  opener.addEventListener("click", () => {
    input.value = saved;
    problem.hidden = true;
    dialog.showModal();
    input.select();
  });
  required(dialog, "form").addEventListener("submit", (event) => {
    event.preventDefault();
    void save();
  });
}

/** Error message; on a conflict, the current stain. */
export function problemText(error: unknown): string {
  if (error instanceof ApiError && error.status === 412) {
    const now = (error.details.current as { stain?: string } | undefined)?.stain;
    return `Someone else has changed this slide in the meantime. Its stain is now ${now ? `“${now}”` : "not known"}. Reload the page to set it.`;
  }
  return error instanceof Error ? error.message : String(error);
}
