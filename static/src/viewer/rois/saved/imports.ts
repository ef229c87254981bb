/** Documents of other tools: sent once, previewed, imported by a job, undone. */

import { API_ROOT, call, getJson, postJson, upload } from "../../lib/http";
import { isUnderWay as isJobUnderWay } from "../../lib/jobs";
import type { Job } from "../../lib/jobs";

export interface ImportClass {
  name: string;
  color: string | null;
  count: number;
  fate: "known" | "mapped" | "created" | "none" | "refused";
  label: string | null;
  label_name: string;
  problem: string;
}

export interface ImportGroup {
  status: "refused" | "repaired";
  reason: string;
  count: number;
  first: number[];
  /** Kind, name and class of the first few. */
  shapes: string[];
}

export interface ImportOutline {
  class: string;
  status: string;
  /** x and y in turn. */
  rings: number[][];
}

export interface ImportReport {
  total: number;
  format: string;
  /** Which image or document of several was read, and by what; empty where there is only one. */
  image_decided: string;
  created: number;
  updated: number;
  restored: number;
  unchanged: number;
  refused: number;
  repaired: number;
  labels_created: string[];
  classes: ImportClass[];
  groups: ImportGroup[];
  id: string | null;
  outlines?: ImportOutline[];
}

export interface ImportJob extends Job {
  seconds_left: number | null;
}

export interface RoiImport {
  id: string;
  format: string;
  name: string;
  stage: "previewing" | "previewed" | "importing" | "imported" | "undoing";
  done: number;
  job: ImportJob | null;
  report: ImportReport | null;
  /** Of one that is taken back, so far. */
  undone: ImportUndone | null;
  undone_at: string | null;
}

export interface ImportUndone {
  removed: number;
  reverted: number;
  kept: number;
}

/** By name of a class: a label's id, or null for none. Classes that are not in it go by the server's rule. */
export type ImportLabels = Record<string, string | null>;

const one = (id: string): string => `${API_ROOT}/roi-imports/${id}/`;

/** Sends a document to be previewed. */
export function importSend(
  canvas: string,
  file: File,
  told: (sent: number, total: number) => void,
  signal: AbortSignal,
): Promise<RoiImport> {
  const name = encodeURIComponent(file.name.slice(0, 200));
  const url = `${API_ROOT}/canvases/${canvas}/roi-file/?background=1&dry_run=1&name=${name}`;
  return upload(url, file, told, signal);
}

export function importStart(id: string, labels: ImportLabels, dryRun: boolean): Promise<RoiImport> {
  return postJson(`${one(id)}start/`, { labels, dry_run: dryRun });
}

export function importGet(id: string): Promise<RoiImport> {
  return getJson(one(id));
}

/** How many ROIs an import would write. */
export const writtenOf = ({ created, updated, restored }: ImportReport): number => created + updated + restored;

/** Whether its job writes: it goes on without the page. */
export const goesOn = ({ stage }: RoiImport): boolean => stage === "importing" || stage === "undoing";

/** Whether such a job waits or runs. */
export const isUnderWay = (row: RoiImport): boolean =>
  goesOn(row) && row.job !== null && isJobUnderWay(row.job);

/** Whether what it wrote can be taken back now, all of it or the rest: it ended, or was stopped. */
export function isUndoable(row: RoiImport): boolean {
  const isOver = row.stage === "imported" || (goesOn(row) && !isUnderWay(row));
  return isOver && !row.undone_at && row.report !== null && writtenOf(row.report) > 0;
}

export const importTableUrl = (id: string): string => `${one(id)}report.csv`;

/** What became of it; for a large import, the row whose job takes it back. */
export async function importUndo(id: string): Promise<ImportUndone | RoiImport> {
  return (await call(`${one(id)}undo/`, { method: "POST" })).json() as Promise<ImportUndone | RoiImport>;
}

export async function importStop(job: string): Promise<void> {
  await call(`${API_ROOT}/jobs/${job}/cancel/`, { method: "POST" });
}
