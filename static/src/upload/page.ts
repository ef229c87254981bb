/**
 * `form[data-upload]` (with `data-crate`: whole cases for a lab): files that were chosen or dropped are sent two at a time, each with a bar, its pace
 * and, where it is refused, the reason. Files that make one slide go as one archive, also out of folders. Without this
 * script the form sends all files at once.
 */

import { toast } from "../app/toasts";
import { element } from "../dom/elements";
import { archived } from "./archive";
import { percentText } from "./pace";
import { chosen, dropped, thingsOf } from "./sets";
import type { Found, Thing } from "./sets";
import { Total } from "./total";
import { Transfer, giveUp } from "./transfer";
import type { Goal } from "./transfer";

/** The portal takes this many long bodies at once; the others wait for their turn here. */
const AT_ONCE = 2;

class UploadPage {
  private readonly transfers: Transfer[] = [];
  private readonly list: Element | null;
  private readonly total: Total | null;
  /** What was dropped as folders and waits for the button. */
  private waiting: Found[] = [];
  /** How many sets are being read for their checksums, and how many lack a file. */
  private reading = 0;
  private incomplete = 0;

  constructor(
    private readonly form: HTMLFormElement,
    private readonly goal: Goal,
    private readonly caseUrl: string,
  ) {
    this.list = form.querySelector("[data-upload-list]");
    const line = form.querySelector<HTMLElement>("[data-upload-total]");
    this.total = line && new Total(line);
    form.querySelector("[data-upload-all]")?.addEventListener("click", (event) => this.all(event));
  }

  /** Keep what was dropped until the button is pressed. */
  keep(found: Found[]): void {
    this.waiting = found;
  }

  /** Send what was chosen and what was dropped. */
  async send(found: Found[]): Promise<void> {
    const all = [...this.waiting, ...found];
    this.waiting = [];
    const things = await thingsOf(all);
    this.add(things.filter(({ isSet }) => !isSet).flatMap(({ files }) => files.map(({ file }) => file)));
    for (const thing of things.filter(({ isSet }) => isSet)) await this.pack(thing);
  }

  /** Read a set for its checksums, and send it. */
  private async pack(thing: Thing): Promise<void> {
    for (const before of this.list?.querySelectorAll<HTMLElement>(`[data-refused="${CSS.escape(thing.name)}"]`) ?? []) this.forget(before);
    const note = element("p", { class: "small", role: "listitem" });
    this.list?.append(note);
    if (thing.missing) return this.refuse(note, thing.name, thing.missing);
    const total = thing.files.reduce((sum, { file }) => sum + file.size, 0);
    const read = (bytes: number) => {
      note.textContent = `${thing.name}: reading its ${thing.files.length} files, ${percentText(bytes, total)}`;
    };
    read(0);
    this.reading += 1;
    try {
      const file = await archived(`${thing.name.replace(/\.(mrxs|vms|vmu)$/i, "")}.zip`, thing.files, read);
      note.remove();
      this.reading -= 1;
      this.add([file]);
    } catch {
      this.reading -= 1;
      this.refuse(note, thing.name, `${thing.name} could not be read: one of its files was moved, changed or locked.`);
    }
  }

  /** A set that cannot be sent: the reason stays until the set is chosen whole, or removed. */
  private refuse(note: HTMLElement, name: string, reason: string): void {
    this.incomplete += 1;
    const away = element("button", { type: "button", class: "btn btn--small btn--quiet", "aria-label": `Remove ${name}` }, "Remove");
    const row = element(
      "div",
      { class: "upload-row upload-row--refused", role: "listitem", "data-refused": name },
      element("p", { class: "field__error", role: "alert" }, reason),
      away,
    );
    away.addEventListener("click", () => {
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
      const transfer = new Transfer(file, this.goal, () => this.next(), () => this.sum());
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
    const kept = this.transfers.filter(({ row }) => row.state !== "gone");
    if (this.reading + this.incomplete > 0) return;
    if (kept.length > 0 && kept.every(({ row }) => row.state === "stored")) window.location.assign(this.caseUrl);
  }

  private sum(): void {
    this.total?.show(this.transfers.map(({ row }) => row.part));
  }

  private all(event: Event): void {
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

const pages = new WeakMap<HTMLFormElement, UploadPage>();

function pageOf(form: HTMLFormElement): UploadPage {
  const { upload = "", crate } = form.dataset;
  const goal = crate === undefined ? { case: upload } : { lab: crate };
  const known = pages.get(form) ?? new UploadPage(form, goal, form.dataset.case ?? window.location.href);
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
      void pageOf(form).send(inputs.flatMap(({ files }) => chosen(files)));
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
      const found = form && event.dataTransfer ? dropped(event.dataTransfer) : null;
      if (!zone || !form || !found) return;
      event.preventDefault();
      event.stopPropagation();
      zone.classList.remove("is-over");
      void found.then((files) => {
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
    const button = (event.target as Element).closest<HTMLElement>("[data-give-up]");
    const row = button?.closest("[data-interrupted]");
    if (!button?.dataset.giveUp || !row) return;
    giveUp(button.dataset.giveUp).then(
      () => row.remove(),
      (error: unknown) => toast(error instanceof Error ? error.message : "It could not be discarded.", "error"),
    );
  });
}
