/** Texts about an import. */

import { writtenCount } from "./imports";
import type { ImportClass, ImportGroup, ImportReport, ImportUndone, RoiImport } from "./imports";

const number = (value: number): string => value.toLocaleString("en-US");
const rois = (value: number): string => `${number(value)} ${value === 1 ? "region" : "regions"}`;

export interface Count {
  text: string;
  tone: "ok" | "warn" | "bad" | "";
}

/** Each count that is not zero, the good ones first. */
export function countsOf(report: ImportReport, isDone: boolean): Count[] {
  const all: [number, string, Count["tone"]][] = [
    [report.created, isDone ? "made" : "new", "ok"],
    [report.updated, isDone ? "changed" : "to change", "ok"],
    [report.restored, isDone ? "brought back" : "to bring back", "ok"],
    [report.events, "of them events", ""],
    [report.unchanged, "already here", ""],
    [report.repaired, "repaired", "warn"],
    [report.refused, "refused", "bad"],
  ];
  return all.filter(([count]) => count > 0).map(([count, word, tone]) => ({ text: `${number(count)} ${word}`, tone }));
}

export function importButtonText(report: ImportReport): string {
  const { events } = report;
  const regions = writtenCount(report) - events;
  const parts = [
    ...(regions ? [rois(regions)] : []),
    ...(events ? [`${number(events)} ${events === 1 ? "event" : "events"}`] : []),
  ];
  return parts.length ? `Import ${parts.join(" and ")}` : "Nothing to import";
}

/** "features 3 (Polygon “a”), 8 and 12 more": people count from one. */
export function placesText({ first, shapes, count }: ImportGroup): string {
  const shapeText = (place: number): string => (shapes[place] ? ` (${shapes[place]})` : "");
  const shown = first.map((index, place) => `${number(index + 1)}${shapeText(place)}`).join(", ");
  const more = count - first.length;
  return `${count === 1 ? "feature" : "features"} ${shown}${more > 0 ? ` and ${number(more)} more` : ""}`;
}

/** Reason without the name of the field and the word that the row begins with. */
export function reasonText({ reason }: Pick<ImportGroup, "reason">): string {
  return reason.replace(/^(geometry|repaired): /, "");
}

/** Default label of a class. */
export function outcomeText({ outcome, name, label_name }: ImportClass): string {
  if (outcome === "created") return `New label “${name}”`;
  if (outcome === "refused") return "Leave its regions out";
  return label_name || "No label";
}

export function progressText(done: number, total: number, secondsLeft: number | null, what = "features"): string {
  if (!total) return "Waiting for a worker…";
  const left = secondsLeft === null ? "" : ` · about ${Math.max(1, Math.round(secondsLeft))} s left`;
  return `${number(done)} of ${number(total)} ${what}${left}`;
}

/** Text of the running stage. */
export function stageText({ stage, name }: Pick<RoiImport, "stage" | "name">): string {
  const acts = { undoing: "Undoing", importing: "Importing" };
  return `${stage === "undoing" || stage === "importing" ? acts[stage] : "Reading"} ${name || "the import"}`;
}

export function undoneText({ removed, reverted, skipped }: ImportUndone, title = "Import undone"): string {
  const counts = [`${number(removed)} removed`];
  if (reverted) counts.push(`${number(reverted)} as before`);
  if (skipped) counts.push(`${number(skipped)} changed since and kept`);
  return `${title}: ${counts.join(", ")}.`;
}
