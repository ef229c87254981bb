/** The dialog that says how large a pixel is, where the file does not. */

import { required } from "../../dom/elements";
import { API_ROOT, call } from "../lib/http";
import type { CanvasData } from "../lib/types";

/** µm per pixel, from the length of one line in both units; null if either is not a length. */
export function mppOf(lengthUm: number, lengthPx: number): number | null {
  const mpp = lengthUm / lengthPx;
  return Number.isFinite(mpp) && mpp > 0 ? Number(mpp.toPrecision(5)) : null;
}

/** Does nothing if the page lacks the dialog: the file gives the size, or this person may not set it. */
export function connectPixelSize(root: HTMLElement, canvas: CanvasData, rulerPx: () => number | null): void {
  const dialog = root.querySelector<HTMLDialogElement>("[data-dialog=pixel-size]");
  if (!dialog) return;
  const input = required<HTMLInputElement>(dialog, "[data-pixel-size]");
  const known = required<HTMLInputElement>(dialog, "[data-known-length]");
  const problem = required(dialog, "[data-pixel-problem]");
  const url = `${API_ROOT}/canvases/${canvas.id}/`;
  let line: number | null = null;
  const tag = dialog.dataset.tag ?? ""; // ETag of the page's state, so that a newer size is not overwritten
  const open = (): void => {
    line = rulerPx();
    input.value = canvas.mpp_x === null ? "" : String(canvas.mpp_x);
    known.value = "";
    problem.hidden = true;
    required(dialog, "[data-ruler-drawn]").hidden = line === null;
    required(dialog, "[data-ruler-none]").hidden = line !== null;
    required(dialog, "[data-ruler-px]").textContent = (line ?? 0).toLocaleString("en", { maximumFractionDigits: 1 });
    dialog.showModal();
    (line === null ? input : known).focus();
  };
  const save = async (mpp: number | null): Promise<void> => {
    try {
      await call(url, { method: "PATCH", body: { mpp_x: mpp }, ifMatch: tag });
      location.reload(); // every length, area and magnification of the page follows; the address keeps the view
    } catch (error) {
      problem.textContent = error instanceof Error ? error.message : String(error);
      problem.hidden = false;
    }
  };
  for (const button of root.querySelectorAll("[data-pixel-size-open]")) button.addEventListener("click", open);
  known.addEventListener("input", () => {
    const mpp = line && mppOf(known.valueAsNumber, line);
    if (mpp) input.value = String(mpp);
  });
  required(dialog, "form").addEventListener("submit", (event) => {
    event.preventDefault();
    void save(input.valueAsNumber);
  });
  dialog.querySelector("[data-pixel-size-clear]")?.addEventListener("click", () => void save(null));
}
