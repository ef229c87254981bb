/** Buttons that set the modality of the image: histology or endoscopy. */

import { API_ROOT, call } from "../lib/http";
import type { CanvasData } from "../lib/types";
import type { StageNotice } from "../lib/stage_notice";

const AFTER_RELOAD = "tessera-modality-set";

/** Does nothing if the page lacks the buttons: this person may not set it. */
export function connectModality(root: HTMLElement, canvas: CanvasData, notice: StageNotice): void {
  const text = sessionStorage.getItem(AFTER_RELOAD);
  if (text) notice.show(text);
  sessionStorage.removeItem(AFTER_RELOAD);
  for (const button of root.querySelectorAll<HTMLButtonElement>("button[data-modality]")) {
    button.addEventListener("click", () => {
      const modality = button.dataset.modality as CanvasData["modality"];
      if (modality !== canvas.modality) void save(modality, `${button.textContent}: its regions are embedded again.`);
    });
  }
  const save = async (modality: CanvasData["modality"], done: string): Promise<void> => {
    try {
      const url = `${API_ROOT}/canvases/${canvas.id}/`;
      await call(url, { method: "PATCH", body: { modality }, ifMatch: root.dataset.editTag ?? "" });
      sessionStorage.setItem(AFTER_RELOAD, done);
      location.reload(); // the page offers other tools now; its address keeps the view
    } catch (error) {
      notice.show(error instanceof Error ? error.message : String(error));
    }
  };
}
