/** Figures of a region: nuclei, stained area, stain means. */

import type { Schemas } from "../../../api/schemas";
import { API_ROOT, getJson, postJson } from "../../lib/http";
import { waitForJob } from "../../lib/jobs";
import type { Job } from "../../lib/jobs";
import { areaText } from "../../lib/units";

export type Figures = Schemas["Figures"];
export type RegionFigures = Schemas["RegionFigures"];
export type Nuclei = Schemas["Nuclei"];

export const figuresOf = (roi: string, signal: AbortSignal): Promise<RegionFigures> =>
  getJson<RegionFigures>(`${API_ROOT}/rois/${roi}/quantification/`, signal);

export const nucleiOf = (roi: string, signal: AbortSignal): Promise<Nuclei> =>
  getJson<Nuclei>(`${API_ROOT}/rois/${roi}/nuclei/`, signal);

/** Submit the job that measures a region. */
export const quantify = (roi: string, staining: string): Promise<Job> =>
  postJson<Job>(`${API_ROOT}/rois/${roi}/quantification/`, staining ? { staining } : {});

/** Text of the progress of a job. */
export function progressText({ state, progress }: Job): string {
  if (state === "queued") return "Waiting for a worker…";
  return progress.total ? `Measuring… ${progress.done} of ${progress.total} tiles` : "Measuring…";
}

/** The reason why a job gave no figures; empty if it gave some. */
export async function failureReason(job: Job, onProgress: (text: string) => void, signal: AbortSignal): Promise<string> {
  const ended = await waitForJob(job, (now) => onProgress(progressText(now)), signal);
  if (ended.state === "succeeded") return "";
  return ended.error?.message ?? "The measurement was stopped.";
}

/** Rows of the table: name and value. */
export function figureRows(figures: Figures): [string, string][] {
  const percent = (value: number | null): string => (value === null ? "–" : `${value.toFixed(1)} %`);
  const rows: [string, string][] = [["Area", areaText(0, figures.area_mm2 * 1e6)]];
  if (figures.nucleus_count !== null && figures.nuclei_per_mm2 !== null) {
    rows.push(["Nuclei", figures.nucleus_count.toLocaleString("en")]);
    rows.push(["Nuclei per mm²", Math.round(figures.nuclei_per_mm2).toLocaleString("en")]);
  }
  if (figures.bin_counts.length) {
    rows.push(["Positive nuclei", percent(figures.positive_percent)]);
    rows.push(["0 / 1+ / 2+ / 3+", figures.bin_counts.join(" / ")]);
    rows.push(["H-score", figures.h_score === null ? "–" : figures.h_score.toFixed(0)]);
  }
  if (figures.staining !== "he") rows.push(["DAB-positive area", percent(figures.positive_area_percent)]);
  for (const [stain, density] of Object.entries(figures.mean_od)) rows.push([`Mean ${stain === "dab" ? "DAB" : stain}`, density.toFixed(3)]);
  return rows;
}

/** Rows of a region of a fixed size, and of the grid that a field belongs to. */
export function sizeRows({ fixed_size, grid }: RegionFigures): [string, string][] {
  const rows: [string, string][] = fixed_size ? [["Fixed size", fixed_size]] : [];
  if (!grid) return rows;
  rows.push(["Grid", grid.text]);
  if (grid.nucleus_count !== null && grid.nuclei_per_mm2 !== null) {
    rows.push(["Nuclei of the grid", grid.nucleus_count.toLocaleString("en")]);
    rows.push(["Nuclei of the grid per mm²", Math.round(grid.nuclei_per_mm2).toLocaleString("en")]);
  } else rows.push(["Fields measured", `${grid.measured_count} of ${grid.field_count}`]);
  return rows;
}

/** Notes on the figures of a region, most important first. */
export function figureNotes({ figures, is_stale }: RegionFigures): string {
  if (!figures) return "Not measured yet.";
  if (is_stale) return "The outline or the scale has changed since: measure again.";
  if (figures.nuclei_missing) return "The image is too coarse to count nuclei: area and stain means only.";
  return "";
}
