/**
 * `form[data-upload]` (with `data-crate`: whole cases for a lab): chosen or dropped files are sent two at a time, each
 * with a progress bar, its rate and, if it is refused, the reason. Files of one slide are sent as one archive, also
 * from folders. Without this script the form sends all files at once.
 */

import { toast } from "../app/toasts";
import { element } from "../dom/elements";
import { zipArchive } from "./zip_archive";
import { percentText } from "./transfer_rate";
import { chosenFiles, droppedFiles, groupFiles } from "./file_sets";
import type { SourceFile, UploadItem } from "./file_sets";
import { TotalProgress } from "./total_progress";
import { Transfer, discardUpload } from "./transfer";
import type { UploadTarget } from "./transfer";

/** Number of parallel uploads. */
const AT_ONCE = 2;

class UploadForm {
  private readonly transfers: Transfer[] = [];
  private readonly list: Element | null;
  private readonly total: TotalProgress | null;
  /** Files of dropped folders, sent when the button is pressed. */
  private waiting: SourceFile[] = [];
  /** Number of sets being read for checksums, and of incomplete sets. */
  private reading = 0;
  private incomplete = 0;

  constructor(
    private readonly form: HTMLFormElement,
    private readonly target: UploadTarget,
    private readonly caseUrl: string,
  ) {
    this.list = form.querySelector("[data-upload-list]");
    const line = form.querySelector<HTMLElement>("[data-upload-total]");
    this.total = line && new TotalProgress(line);
    form.querySelector("[data-upload-all]")?.addEventListener("click", (event) => this.toggleAll(event));
  }

  /** Keep what was dropped until the button is pressed. */
  keep(found: SourceFile[]): void {
    this.waiting = found;
  }

  /** Send what was chosen and what was dropped. */
  async send(found: SourceFile[]): Promise<void> {
    const all = [...this.waiting, ...found];
    this.waiting = [];
    const items = await groupFiles(all);
    this.add(items.filter(({ isSet }) => !isSet).flatMap(({ files }) => files.map(({ file }) => file)));
    for (const item of items.filter(({ isSet }) => isSet)) await this.pack(item);
  }

  /** Read a set for its checksums, and send it. */
  private async pack(item: UploadItem): Promise<void> {
    for (const before of this.list?.querySelectorAll<HTMLElement>(`[data-refused="${CSS.escape(item.name)}"]`) ?? []) this.forget(before);
    const note = element("p", { class: "small", role: "listitem" });
    this.list?.append(note);
    if (item.missing) return this.refuse(note, item.name, item.missing);
    const total = item.files.reduce((sum, { file }) => sum + file.size, 0);
    const read = (bytes: number) => {
      note.textContent = `${item.name}: reading its ${item.files.length} files, ${percentText(bytes, total)}`;
    };
    read(0);
    this.reading += 1;
    try {
      const file = await zipArchive(`${item.name.replace(/\.(mrxs|vms|vmu)$/i, "")}.zip`, item.files, read);
      note.remove();
      this.reading -= 1;
      this.add([file]);
    } catch {
      this.reading -= 1;
      this.refuse(note, item.name, `${item.name} could not be read: one of its files was moved, changed or locked.`);
    }
  }

  /** Show a set that cannot be sent; the reason stays until the complete set is chosen or the set is removed. */
  private refuse(note: HTMLElement, name: string, reason: string): void {
    this.incomplete += 1;
    const removeButton = element("button", { type: "button", class: "btn btn--small btn--quiet", "aria-label": `Remove ${name}` }, "Remove");
    const row = element(
      "div",
      { class: "upload-row upload-row--refused", role: "listitem", "data-refused": name },
      element("p", { class: "field__error", role: "alert" }, reason),
      removeButton,
    );
    removeButton.addEventListener("click", () => {
      this.forget(row);
      this.next();
    });
    note.replaceWith(row);
  }

  private forget(row: HTMLElement): void {
    this.incomplete -= 1;
    row.remove();
  }

  private add(files: File[]): void {
    for (const file of files) {
      const known = this.transfers.find(({ file: other, row }) => isSame(other, file) && row.state !== "gone");
      if (known) {
        if (known.row.state === "refused" || known.row.state === "paused") known.row.show("waiting");
        continue;
      }
      const transfer = new Transfer(file, this.target, () => this.next(), () => this.sum());
      this.transfers.push(transfer);
      this.list?.append(transfer.row.element);
      document.querySelector(`[data-interrupted="${CSS.escape(file.name)}"]`)?.remove();
    }
    this.next();
  }

  get isBusy(): boolean {
    return this.reading > 0 || this.transfers.some(({ row }) => row.state === "sending" || row.state === "waiting");
  }

  private next(): void {
    const sending = this.transfers.filter(({ row }) => row.state === "sending").length;
    const waiting = this.transfers.filter(({ row }) => row.state === "waiting");
    for (const transfer of waiting.slice(0, AT_ONCE - sending)) void transfer.start();
    this.form.setAttribute("aria-busy", String(this.isBusy));
    const all = this.form.querySelector<HTMLElement>("[data-upload-all]");
    if (all) {
      all.hidden = this.transfers.filter(({ row }) => !row.isOver && row.state !== "checking").length < 2;
      all.textContent = this.isBusy ? "Pause all" : "Resume all";
    }
    this.sum();
    const remaining = this.transfers.filter(({ row }) => row.state !== "gone");
    if (this.reading + this.incomplete > 0) return;
    if (remaining.length > 0 && remaining.every(({ row }) => row.state === "stored")) window.location.assign(this.caseUrl);
  }

  private sum(): void {
    this.total?.show(this.transfers.map(({ row }) => row.part));
  }

  private toggleAll(event: Event): void {
    event.preventDefault();
    if (this.isBusy) {
      for (const transfer of this.transfers) {
        if (transfer.row.state === "sending" || transfer.row.state === "waiting") void transfer.pause();
      }
    } else {
      for (const { row } of this.transfers) if (row.state === "paused") row.show("waiting");
      this.next();
    }
  }
}

function isSame(one: File, other: File): boolean {
  return one.name === other.name && one.size === other.size && one.lastModified === other.lastModified;
}

const pages = new WeakMap<HTMLFormElement, UploadForm>();

function pageOf(form: HTMLFormElement): UploadForm {
  const { upload = "", crate } = form.dataset;
  const target = crate === undefined ? { case: upload } : { lab: crate };
  const known = pages.get(form) ?? new UploadForm(form, target, form.dataset.case ?? window.location.href);
  pages.set(form, known);
  return known;
}

export function watchUploads(): void {
  // Captured, so that it comes before the guard against double submission, which marks the form as busy.
  document.addEventListener(
    "submit",
    (event) => {
      const form = event.target as HTMLFormElement;
      if (!form.matches("[data-upload]")) return;
      event.preventDefault();
      event.stopPropagation();
      const inputs = Array.from(form.querySelectorAll<HTMLInputElement>("input[type=file]"));
      void pageOf(form).send(inputs.flatMap(({ files }) => chosenFiles(files)));
      form.reset();
      for (const input of inputs) input.dispatchEvent(new Event("change", { bubbles: true }));
    },
    { capture: true },
  );
  // Captured: the drop zone would take a folder for a file.
  document.addEventListener(
    "drop",
    (event) => {
      const zone = (event.target as Element).closest(".dropzone");
      const form = zone?.closest<HTMLFormElement>("[data-upload]");
      const droppedItems = form && event.dataTransfer ? droppedFiles(event.dataTransfer) : null;
      if (!zone || !form || !droppedItems) return;
      event.preventDefault();
      event.stopPropagation();
      zone.classList.remove("is-over");
      void droppedItems.then((files) => {
        pageOf(form).keep(files);
        form.requestSubmit();
      });
    },
    { capture: true },
  );
  window.addEventListener("beforeunload", (event) => {
    const form = document.querySelector<HTMLFormElement>("form[data-upload]");
    if (form && pages.get(form)?.isBusy) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("[data-discard-upload]");
    const row = button?.closest("[data-interrupted]");
    if (!button?.dataset.discardUpload || !row) return;
    discardUpload(button.dataset.discardUpload).then(
      () => row.remove(),
      (error: unknown) => toast(error instanceof Error ? error.message : "It could not be discarded.", "error"),
    );
  });
}
