/** ROIs as a GeoJSON file, out and in, as QuPath reads and writes it. */

import { ApiError, geojsonImport, geojsonUrl } from "./api";
import { required } from "./dom";
import type { RoiStore } from "./rois";
import type { Toasts } from "./toast";
import type { CanvasData } from "./types";

export function exchange(root: HTMLElement, canvas: CanvasData, store: RoiStore, toasts: Toasts): void {
  const link = required<HTMLAnchorElement>(root, "[data-geojson-download]");
  link.href = geojsonUrl(canvas.id);
  link.download = `${canvas.name.replace(/[^\w.-]+/g, "_")}.geojson`;
  const input = root.querySelector<HTMLInputElement>("[data-geojson-file]");
  root.querySelector("[data-geojson-import]")?.addEventListener("click", () => input?.click());
  input?.addEventListener("change", () => {
    const file = input.files?.[0];
    if (file) void importFile(file, canvas, store, toasts);
    input.value = "";
  });
}

async function importFile(file: File, canvas: CanvasData, store: RoiStore, toasts: Toasts): Promise<void> {
  toasts.show(`Reading ${file.name}…`);
  try {
    const body: unknown = JSON.parse(await file.text());
    const answer = await geojsonImport(canvas.id, body);
    await store.load();
    toasts.show(importedText(answer));
  } catch (error) {
    const reason =
      error instanceof SyntaxError ? "it is not JSON" : error instanceof ApiError ? error.message : "unknown error";
    toasts.show(`${file.name} was not imported: ${reason}`);
  }
}

function importedText(answer: Record<string, unknown>): string {
  const count = (...names: string[]): number => {
    for (const name of names) {
      const value = answer[name];
      if (typeof value === "number") return value;
      if (Array.isArray(value)) return value.length;
    }
    return 0;
  };
  const made = count("created", "imported", "count", "rois");
  const changed = count("updated", "changed");
  const refused = count("refused", "skipped", "rejected", "errors");
  const parts = [`${made} ${made === 1 ? "ROI" : "ROIs"} imported`];
  if (changed) parts.push(`${changed} changed`);
  if (refused) parts.push(`${refused} refused`);
  return `${parts.join(", ")}.`;
}
