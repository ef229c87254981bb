/** The page "Measure" of the selected region: start, progress, figures, nuclei on the image. */

import { element, required } from "../../dom/elements";
import { ApiError } from "../lib/http";
import type { Job } from "../lib/jobs";
import { NucleusLayer } from "../rois/rendering/nucleus_layer";
import { figureNotes, figureRows, figuresOf, failureReason, nucleiOf, quantify, sizeRows } from "../rois/store/quantification";
import type { RegionFigures } from "../rois/store/quantification";
import type { RoiState } from "../rois/store/roi_state";
import { isArea } from "../rois/shapes/outlines";
import type { Parts } from "./parts";

export function connectQuantification(parts: Parts): void {
  const page = parts.root.querySelector<HTMLElement>("#roi-quantification");
  if (page) new QuantificationPage(page, parts);
}

class QuantificationPage {
  private readonly nuclei = new NucleusLayer();
  private readonly status: HTMLElement;
  private readonly toggle: HTMLInputElement;
  private roi: RoiState | null = null;
  private version = 0;
  private loading = new AbortController();

  constructor(
    private readonly page: HTMLElement,
    parts: Parts,
  ) {
    this.status = required(page, "[data-quantification-status]");
    this.toggle = required<HTMLInputElement>(page, "[data-quantification-nuclei]");
    parts.mapView.map.addLayer(this.nuclei.layer);
    page.addEventListener("toggle", () => void this.load());
    page.querySelector("form")?.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.start();
    });
    this.toggle.addEventListener("change", () => void this.showNuclei());
    parts.layer.on("select", (state) => this.select(state));
    parts.store.on("changed", (state) => state === this.roi && this.select(state));
  }

  private select(state: RoiState | null): void {
    const version = state?.server?.version ?? 0;
    if (state === this.roi && version === this.version) return;
    this.roi = state;
    this.version = version;
    this.showFigures(null);
    if (!this.page.hidden) void this.load();
  }

  private async load(): Promise<void> {
    this.loading.abort();
    this.loading = new AbortController();
    const { signal } = this.loading;
    const roi = this.roi;
    if (!roi?.server) return;
    await this.run(signal, async () => {
      const figures = await figuresOf(roi.id, signal);
      this.showFigures(figures);
      if (!figures.job) return;
      if (figures.job.state === "failed") this.status.textContent = figures.job.error?.message ?? "The measurement failed.";
      else await this.wait(roi, figures.job, signal);
    });
  }

  private async start(): Promise<void> {
    const roi = this.roi;
    if (!roi?.server) return this.showStatus("This region is not saved yet. Try again in a moment.");
    if (!isArea(roi.geometry)) return this.showStatus("Points and lines have no area to measure.");
    this.loading.abort();
    this.loading = new AbortController();
    const { signal } = this.loading;
    const staining = required<HTMLSelectElement>(this.page, "select").value;
    await this.run(signal, async () => this.wait(roi, await quantify(roi.id, staining), signal));
  }

  private async wait(roi: RoiState, job: Job, signal: AbortSignal): Promise<void> {
    this.page.setAttribute("aria-busy", "true");
    const reason = await failureReason(job, (text) => this.showStatus(text), signal);
    this.showFigures(await figuresOf(roi.id, signal));
    if (reason) this.showStatus(reason);
  }

  private async run(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!signal.aborted) this.showStatus(error instanceof ApiError ? error.message : "That did not work. Try again.");
    } finally {
      if (!signal.aborted) this.page.removeAttribute("aria-busy");
    }
  }

  private showStatus(text: string): void {
    this.status.textContent = text;
  }

  private showFigures(found: RegionFigures | null): void {
    const table = required(this.page, "[data-quantification-figures]");
    const figures = found?.figures ?? null;
    const rows = found && figures ? [...sizeRows(found), ...figureRows(figures)] : [];
    required(table, "tbody").replaceChildren(
      ...rows.map(([name, value]) => element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value))),
    );
    table.hidden = !figures;
    required(this.page, "[data-quantification-more]").hidden = !figures;
    this.toggle.disabled = !figures?.nucleus_count || (found?.is_stale ?? true);
    this.showStatus(found ? figureNotes(found) : "");
    void this.showNuclei();
  }

  private async showNuclei(): Promise<void> {
    const roi = this.roi;
    this.nuclei.show(null);
    if (!roi || !this.toggle.checked || this.toggle.disabled) return;
    const { signal } = this.loading;
    await this.run(signal, async () => {
      const nuclei = await nucleiOf(roi.id, signal);
      if (roi === this.roi && this.toggle.checked) this.nuclei.show(nuclei);
    });
  }
}
