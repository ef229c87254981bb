/** Export and import of ROIs as GeoJSON, as QuPath reads and writes it. */

import { geojsonImport, geojsonUrl, importUndo } from "./api";
import { ApiError } from "../../lib/http";
import type { ImportReport, ImportUndone } from "./api";
import { required } from "../../../dom/elements";
import type { RoiStore } from "./store";
import type { StageNotice } from "../../lib/stage_notice";
import type { CanvasData } from "../../lib/types";

export function exchange(root: HTMLElement, canvas: CanvasData, store: RoiStore, notice: StageNotice): void {
  const link = required<HTMLAnchorElement>(root, "[data-geojson-download]");
  link.href = geojsonUrl(canvas.id);
  link.download = `${canvas.name.replace(/[^\w.-]+/g, "_")}.geojson`;
  const input = root.querySelector<HTMLInputElement>("[data-geojson-file]");
  root.querySelector("[data-geojson-import]")?.addEventListener("click", () => input?.click());
  input?.addEventListener("change", () => {
    const file = input.files?.[0];
    if (file) void importFile(file, canvas, store, notice);
    input.value = "";
  });
}

async function importFile(file: File, canvas: CanvasData, store: RoiStore, notice: StageNotice): Promise<void> {
  notice.show(`Reading ${file.name}…`);
  try {
    const body: unknown = JSON.parse(await file.text());
    const report = await geojsonImport(canvas.id, body);
    await store.load();
    const id = report.id;
    const undo = id === null ? undefined : { label: "Undo", run: () => void undoImport(id, store, notice) };
    notice.show(importedText(report), undo);
  } catch (error) {
    const reason =
      error instanceof SyntaxError ? "it is not JSON" : error instanceof ApiError ? error.message : "unknown error";
    notice.show(`${file.name} was not imported: ${reason}`);
  }
}

/** Takes the whole import back; what somebody changed since stays. */
async function undoImport(id: string, store: RoiStore, notice: StageNotice): Promise<void> {
  try {
    const undone = await importUndo(id);
    await store.load();
    notice.show(undoneText(undone));
  } catch (error) {
    notice.show(`The import was not undone: ${error instanceof ApiError ? error.message : "unknown error"}`);
  }
}

export function undoneText({ removed, reverted, kept }: ImportUndone): string {
  const counts = [`${removed} removed`];
  if (reverted) counts.push(`${reverted} as before`);
  if (kept) counts.push(`${kept} changed since and kept`);
  return `Import undone: ${counts.join(", ")}.`;
}

/** What became of every feature in the file, with the reason for the first one refused. */
export function importedText(report: ImportReport): string {
  const counts = (["created", "updated", "restored", "unchanged", "repaired", "refused"] as const)
    .filter((name) => report[name] > 0)
    .map((name) => `${report[name]} ${name}`);
  const refused = report.items.find((item) => item.status === "refused");
  const reason = refused ? ` Feature ${refused.index + 1}: ${refused.reason}` : "";
  return `ROIs of the file: ${counts.join(", ") || "none"}.${reason}`;
}
