/** Import of a document: chosen or dropped, sent, previewed with its classes and reasons, imported, undone. */

import { element, required } from "../../../dom/elements";
import { ApiError } from "../../lib/http";
import { waitForJob } from "../../lib/jobs";
import type { CanvasData } from "../../lib/types";
import { countsOf, importButtonText, progressText, stageText, undoneText } from "../store/import_texts";
import {
  isWriting,
  importGet,
  importSend,
  importStart,
  importStop,
  importTableUrl,
  importUndo,
  isUnderWay,
  isUndoable,
  writtenCount,
} from "../store/imports";
import type { ImportLabels, ImportUndone, RoiImport } from "../store/imports";
import type { Labels } from "../store/labels";
import { UNLABELLED_COLOR } from "../store/labels";
import { importPreview } from "../rendering/import_preview";
import { classRows, reasonRows } from "./import_rows";

type Step = "choose" | "busy" | "preview" | "done";

const NONE_UNDONE: ImportUndone = { removed: 0, reverted: 0, skipped: 0 };

export interface ImportHost {
  root: HTMLElement;
  canvas: CanvasData;
  labels: Labels;
  /** The ROIs on the server have changed. */
  reload: () => Promise<void>;
  showNotice: (text: string) => void;
}

export class ImportDialog {
  private readonly dialog: HTMLDialogElement;
  private readonly input: HTMLInputElement;
  private labels: ImportLabels = {};
  private row: RoiImport | null = null;
  private stop = new AbortController();
  private madeLabels = false;
  /** The last import from this browser that can still be undone. */
  private last: RoiImport | null = null;

  constructor(private readonly host: ImportHost) {
    this.dialog = required<HTMLDialogElement>(host.root, "[data-dialog=import]");
    this.input = required<HTMLInputElement>(this.dialog, "[data-import-file]");
    const onClick = (selector: string, run: () => void): void => this.part(selector).addEventListener("click", run);
    onClick("[data-import-choose]", () => this.input.click());
    onClick("[data-import-again]", () => this.choose());
    onClick("[data-import-go]", () => void this.startImport(false));
    onClick("[data-import-stop]", () => void this.cancel());
    onClick("[data-import-undo]", () => void this.undo());
    onClick("[data-import-last]", () => this.showLast());
    this.input.addEventListener("change", () => {
      const file = this.input.files?.[0];
      this.input.value = "";
      if (file) void this.send(file);
    });
    this.dialog.addEventListener("close", () => this.handleClose());
    this.acceptDrops(this.part("[data-import-drop]"));
    this.acceptDrops(host.root);
    void this.resumeImport();
  }

  open(): void {
    if (this.dialog.open) return;
    if (!this.row) this.choose();
    this.dialog.showModal();
  }

  private acceptDrops(target: HTMLElement): void {
    const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
    target.addEventListener("dragover", (event) => {
      if (hasFiles(event)) event.preventDefault();
    });
    target.addEventListener("drop", (event) => {
      const file = event.dataTransfer?.files[0];
      if (!file) return;
      event.preventDefault();
      event.stopPropagation();
      this.open();
      void this.send(file);
    });
  }

  private choose(): void {
    this.row = null;
    this.labels = {};
    this.show("choose");
    const button = this.part("[data-import-last]");
    button.textContent = `Last import: ${this.last?.name || "a file"}…`;
    button.hidden = !this.last;
  }

  private showLast(): void {
    this.row = this.last;
    if (this.row) this.showDone(isWriting(this.row));
  }

  private async send(file: File): Promise<void> {
    if (this.dialog.dataset.step === "busy") return;
    this.labels = {};
    this.row = null;
    await this.runStep(`Sending ${file.name}`, async (signal) => {
      const onProgress = (done: number, total: number): void =>
        this.showProgress(done, total, done < total ? `${Math.floor((100 * done) / total)} % sent` : "Being stored…");
      await this.follow(await importSend(this.host.canvas.id, file, onProgress, signal));
    });
  }

  /** Import what was previewed, or preview it with other choices. */
  private async startImport(dryRun: boolean): Promise<void> {
    const { row } = this;
    if (!row) return;
    if (!dryRun) this.remember(row); // before the answer, which may come when the page has been left
    await this.runStep(dryRun ? "Looking again" : "Importing", async () => {
      await this.follow(await importStart(row.id, this.labels, dryRun));
    });
  }

  /** Show an import, or its undoing, that continued while the page was closed. */
  private async resumeImport(): Promise<void> {
    const id = localStorage.getItem(this.key);
    if (!id) return this.findLast();
    const row = await importGet(id).catch(() => null);
    if (row && isUnderWay(row)) return this.runStep(stageText(row), () => this.follow(row));
    localStorage.removeItem(this.key);
    if (row && isUndoable(row)) this.keepLast(row); // it ended while the page was closed
    return this.findLast();
  }

  private async findLast(): Promise<void> {
    const id = localStorage.getItem(this.lastKey);
    const row = id ? await importGet(id).catch(() => null) : null;
    this.keepLast(row && isUndoable(row) ? row : null);
    if (this.dialog.dataset.step === "choose") this.choose();
  }

  private get key(): string {
    return `tessera-import-${this.host.canvas.id}`;
  }

  private get lastKey(): string {
    return `${this.key}-last`;
  }

  private remember(row: RoiImport): void {
    localStorage.setItem(this.key, row.id);
  }

  private keepLast(row: RoiImport | null): void {
    this.last = row;
    if (row) localStorage.setItem(this.lastKey, row.id);
    else localStorage.removeItem(this.lastKey);
  }

  private async follow(row: RoiImport): Promise<void> {
    this.row = row;
    const writes = isWriting(row);
    if (writes) this.remember(row);
    this.part("[data-import-what]").textContent = stageText(row);
    this.part("[data-import-leave]").hidden = !writes;
    if (!row.job) return;
    const what = row.stage === "undoing" ? "regions" : "features";
    const job = await waitForJob(
      row.job,
      ({ progress: { done, total }, seconds_left }) => this.showProgress(done, total, progressText(done, total, seconds_left, what)),
      this.stop.signal,
    );
    this.row = await importGet(row.id);
    if (writes) {
      localStorage.removeItem(this.key);
      await this.host.reload();
    }
    if (job.state === "failed") throw new ApiError(400, "failed", job.error?.message ?? "It failed.");
    const wasStopped = job.state === "cancelled";
    if (row.stage === "undoing" && !wasStopped) this.showUndone(this.row.undone);
    else if (writes) this.showDone(wasStopped);
    else if (wasStopped) this.choose();
    else this.showPreview();
  }

  /** Run a slow step; on failure show the error and return to the choice of a file. */
  private async runStep(title: string, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.stop = new AbortController();
    this.part("[data-import-what]").textContent = title;
    this.part("[data-import-leave]").hidden = true;
    this.showProgress(0, 0, "");
    this.show("busy");
    try {
      await run(this.stop.signal);
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return this.choose();
      const text = error instanceof ApiError ? error.message : "Something went wrong in this page.";
      const wasUndoing = this.row?.stage === "undoing";
      const title = wasUndoing ? "Not everything was undone" : "Nothing was imported";
      if (wasUndoing) this.showDone(true);
      else this.choose();
      this.part("[data-import-problem]").textContent = `${title}: ${text}`;
      this.part("[data-import-problem]").hidden = false;
      if (!this.dialog.open) this.host.showNotice(`${wasUndoing ? title : "The import failed"}: ${text}`);
    }
  }

  private async cancel(): Promise<void> {
    const job = this.row?.job;
    if (!job) return this.stop.abort();
    this.showProgress(0, 0, "Stopping…");
    try {
      await importStop(job.id);
    } catch {
      // it has ended in the meantime: show its result
    }
  }

  private async undo(): Promise<void> {
    if (!this.row) return;
    const button = this.part<HTMLButtonElement>("[data-import-undo]");
    button.disabled = true;
    try {
      this.remember(this.row);
      const answer = await importUndo(this.row.id);
      if ("stage" in answer) return await this.runStep(stageText(answer), () => this.follow(answer));
      await this.host.reload();
      this.showUndone(answer);
    } catch (error) {
      this.host.showNotice(`The import was not undone: ${error instanceof ApiError ? error.message : "unknown error"}`);
    } finally {
      button.disabled = false;
    }
  }

  private showUndone(counts: ImportUndone | null): void {
    if (counts) this.host.showNotice(undoneText(counts));
    this.keepLast(null);
    this.show("done");
    this.dialog.close();
    this.row = null;
  }

  private showPreview(): void {
    const report = this.row?.report;
    if (!report || !this.row) return this.choose();
    this.fill(false);
    const colors = new Map(report.classes.map((one) => [one.name, this.colorOf(one.label, one.color)]));
    const map = importPreview(this.host.canvas, report.outlines ?? [], (name) => colors.get(name) ?? UNLABELLED_COLOR);
    this.part("[data-import-map]").replaceChildren(map);
    const choose = (name: string, label: string | null | undefined): void => {
      const others = Object.entries(this.labels).filter(([one]) => one !== name);
      this.labels = Object.fromEntries(label === undefined ? others : [...others, [name, label]]);
      void this.startImport(true);
    };
    const rows = classRows(report.classes, this.host.labels, this.labels, choose);
    this.part("[data-import-classes]").hidden = rows.length === 0;
    this.part("[data-import-class-rows]").replaceChildren(...rows);
    const button = this.part<HTMLButtonElement>("[data-import-go]");
    button.textContent = importButtonText(report);
    button.disabled = writtenCount(report) === 0;
    this.show("preview");
    (button.disabled ? this.part("[data-import-again]") : button).focus();
  }

  private colorOf(label: string | null, color: string | null): string {
    return label ? this.host.labels.colorOf(label) : (color ?? UNLABELLED_COLOR);
  }

  private showDone(wasStopped: boolean): void {
    const report = this.row?.report;
    this.madeLabels = (report?.labels_created.length ?? 0) > 0;
    const undo = this.part<HTMLButtonElement>("[data-import-undo]");
    const wasUndoing = this.row?.stage === "undoing";
    undo.textContent = wasUndoing ? "Undo the rest" : "Undo this import";
    if (report) this.fill(true);
    let title = wasStopped ? "Stopped. What was imported until then is kept." : "Imported.";
    if (wasUndoing) title = `Stopped. ${undoneText(this.row?.undone ?? NONE_UNDONE, "Undone so far")}`;
    this.part("[data-import-summary]").prepend(element("strong", {}, report ? title : "Stopped. Nothing was imported."));
    this.show("done");
    undo.hidden = !report || writtenCount(report) === 0;
    if (!undo.hidden) this.keepLast(this.row);
    if (!this.dialog.open && report) {
      this.host.showNotice(`${title} ${countsOf(report, true).map(({ text }) => text).join(", ")}.`);
    }
  }

  /** Counts and reasons. */
  private fill(isDone: boolean): void {
    const { row } = this;
    const report = row?.report;
    if (!row || !report) return;
    const counts = countsOf(report, isDone).map(({ text, tone }) => {
      return element("span", { class: `pill${tone ? ` pill--${tone}` : ""}` }, text);
    });
    const none = element("span", { class: "muted" }, "The document holds no features.");
    this.part("[data-import-summary]").replaceChildren(...(counts.length ? counts : [none]));
    this.part("[data-import-name]").textContent = row.name;
    this.part("[data-import-image]").textContent = report.image_decided;
    this.part("[data-import-image]").hidden = !report.image_decided;
    this.part("[data-import-reasons]").hidden = report.groups.length === 0;
    this.part("[data-import-reason-rows]").replaceChildren(...reasonRows(report.groups));
    this.part<HTMLAnchorElement>("[data-import-table]").href = importTableUrl(row.id);
  }

  private showProgress(done: number, total: number, text: string): void {
    const bar = this.part<HTMLProgressElement>("[data-import-bar]");
    if (total) [bar.max, bar.value] = [total, done];
    else bar.removeAttribute("value");
    this.part("[data-import-progress]").textContent = text;
  }

  private show(step: Step): void {
    this.dialog.dataset.step = step;
    this.part("[data-import-problem]").hidden = true;
    for (const part of this.dialog.querySelectorAll<HTMLElement>("[data-in]")) {
      part.hidden = !(part.dataset.in ?? "").split(" ").includes(step);
    }
    if (step === "choose" || step === "busy") this.part("[data-import-image]").hidden = true;
  }

  /** Closing aborts a preview; an import continues. */
  private handleClose(): void {
    if (this.dialog.dataset.step === "busy" && !(this.row && isWriting(this.row))) {
      void this.cancel();
    } else if (this.dialog.dataset.step === "done") {
      this.row = null;
      if (this.madeLabels) location.reload(); // every list of labels on this page is out of date
    }
  }

  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- what the template promises
  private part<T extends HTMLElement = HTMLElement>(selector: string): T {
    return required<T>(this.dialog, selector);
  }
}
