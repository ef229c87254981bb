/** Imports of files of other tools: upload, preview, import by a job, undo. */

import type { Schemas } from "../../../api/schemas";
import { API_ROOT, call, getJson, postJson, upload } from "../../lib/http";
import { isUnderWay as isJobUnderWay } from "../../lib/jobs";

export type ImportClass = Schemas["ImportClass"];
export type ImportGroup = Schemas["ImportGroup"];
export type ImportOutline = Schemas["Outline"];
export type ImportReport = Schemas["StoredReport"];
export type ImportUndone = Schemas["ImportUndone"];
export type RoiImport = Schemas["RoiImport"];

/** Label id by class name, null for no label. The server maps the other classes. */
export type ImportLabels = Record<string, string | null>;

const importUrl = (id: string): string => `${API_ROOT}/roi-imports/${id}/`;

/** Sends a document to be previewed. */
export function importSend(
  canvas: string,
  file: File,
  onProgress: (sent: number, total: number) => void,
  signal: AbortSignal,
): Promise<RoiImport> {
  const name = encodeURIComponent(file.name.slice(0, 200));
  const url = `${API_ROOT}/canvases/${canvas}/roi-file/?background=1&dry_run=1&name=${name}`;
  return upload(url, file, onProgress, signal);
}

export function importStart(id: string, labels: ImportLabels, dryRun: boolean): Promise<RoiImport> {
  return postJson(`${importUrl(id)}start/`, { labels, dry_run: dryRun });
}

export function importGet(id: string): Promise<RoiImport> {
  return getJson(importUrl(id));
}

/** Number of ROIs and events that an import writes. */
export const writtenCount = ({ created, updated, restored }: ImportReport): number => created + updated + restored;

/** True if the import's job writes: it continues without the page. */
export const isWriting = ({ stage }: RoiImport): boolean => stage === "importing" || stage === "undoing";

/** True if such a job waits or runs. */
export const isUnderWay = (row: RoiImport): boolean =>
  isWriting(row) && row.job !== null && isJobUnderWay(row.job);

/** True if the import can be undone now, entirely or for the rest: it ended, or was stopped. */
export function isUndoable(row: RoiImport): boolean {
  const isOver = row.stage === "imported" || (isWriting(row) && !isUnderWay(row));
  return isOver && !row.undone_at && row.report !== null && writtenCount(row.report) > 0;
}

export const importTableUrl = (id: string): string => `${importUrl(id)}report.csv`;

/** Undo an import: the counts, or for a large import the row of the job that undoes it. */
export async function importUndo(id: string): Promise<ImportUndone | RoiImport> {
  return (await call(`${importUrl(id)}undo/`, { method: "POST" })).json() as Promise<ImportUndone | RoiImport>;
}

export async function importStop(job: string): Promise<void> {
  await call(`${API_ROOT}/jobs/${job}/cancel/`, { method: "POST" });
}
