/** The dialog that says which stored values are black and white, for images of more than 8 bits. */

import { required } from "../../dom/elements";
import { API_ROOT, call } from "../lib/http";
import type { CanvasData, DisplayRange } from "../lib/types";

/** The range of two numbers; null if they are not two different ones. */
export function rangeOf(low: number, high: number): DisplayRange | null {
  return Number.isFinite(low) && Number.isFinite(high) && low !== high ? { low, high } : null;
}

/** Connect the dialog that sets the display range; absent for images of 8 bits and for readers. */
export function connectDisplayRange(root: HTMLElement, canvas: CanvasData): void {
  const dialog = root.querySelector<HTMLDialogElement>("[data-dialog=display-range]");
  if (!dialog) return;
  const low = required<HTMLInputElement>(dialog, "[data-range-low]");
  const high = required<HTMLInputElement>(dialog, "[data-range-high]");
  const problem = required(dialog, "[data-range-problem]");
  const tag = dialog.dataset.tag ?? ""; // ETag of the page's state, so that a newer range is not overwritten
  const complain = (text: string): void => {
    problem.textContent = text;
    problem.hidden = false;
  };
  const open = (): void => {
    low.value = String(canvas.display_range?.low ?? "");
    high.value = String(canvas.display_range?.high ?? "");
    problem.hidden = true;
    dialog.showModal();
    low.focus();
  };
  const save = async (range: DisplayRange | null): Promise<void> => {
    try {
      const url = `${API_ROOT}/canvases/${canvas.id}/`;
      await call(url, { method: "PATCH", body: { display_range: range }, ifMatch: tag });
      location.reload(); // tiles have other addresses now; the page's address keeps the view
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    }
  };
  for (const button of root.querySelectorAll("[data-display-range-open]")) button.addEventListener("click", open);
  required(dialog, "form").addEventListener("submit", (event) => {
    event.preventDefault();
    const range = rangeOf(low.valueAsNumber, high.valueAsNumber);
    if (range) void save(range);
    else complain("Low and high must be two different numbers.");
  });
  dialog.querySelector("[data-range-reset]")?.addEventListener("click", () => void save(null));
}
