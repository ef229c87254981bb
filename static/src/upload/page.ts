/**
 * `form[data-upload]` (with `data-crate`: whole cases for a lab): files that were chosen or dropped are sent two at a time, each with a bar, its pace
 * and, where it is refused, the reason. Without this script the form sends all of them at once.
 */

import { toast } from "../app/toasts";
import { Transfer, giveUp } from "./transfer";
import type { Goal } from "./transfer";

/** The portal takes so many long bodies at once; the others wait for their turn here. */
const AT_ONCE = 2;

class UploadPage {
  private readonly transfers: Transfer[] = [];
  private readonly list: Element | null;

  constructor(
    private readonly form: HTMLFormElement,
    private readonly goal: Goal,
    private readonly caseUrl: string,
  ) {
    this.list = form.querySelector("[data-upload-list]");
    form.querySelector("[data-upload-all]")?.addEventListener("click", (event) => this.all(event));
  }

  add(files: File[]): void {
    for (const file of files) {
      const known = this.transfers.find(({ file: other, row }) => isSame(other, file) && row.state !== "gone");
      if (known) {
        if (known.row.state === "refused" || known.row.state === "paused") known.row.show("waiting");
        continue;
      }
      const transfer = new Transfer(file, this.goal, () => this.next());
      this.transfers.push(transfer);
      this.list?.append(transfer.row.element);
      document.querySelector(`[data-interrupted="${CSS.escape(file.name)}"]`)?.remove();
    }
    this.next();
  }

  get isBusy(): boolean {
    return this.transfers.some(({ row }) => row.state === "sending" || row.state === "waiting");
  }

  private next(): void {
    const sending = this.transfers.filter(({ row }) => row.state === "sending").length;
    const waiting = this.transfers.filter(({ row }) => row.state === "waiting");
    for (const transfer of waiting.slice(0, AT_ONCE - sending)) void transfer.start();
    this.form.setAttribute("aria-busy", String(this.isBusy));
    const all = this.form.querySelector<HTMLElement>("[data-upload-all]");
    if (all) {
      all.hidden = this.transfers.filter(({ row }) => !row.isOver && row.state !== "checking").length < 2;
      all.textContent = this.isBusy ? "Pause all" : "Go on with all";
    }
    const kept = this.transfers.filter(({ row }) => row.state !== "gone");
    if (kept.length > 0 && kept.every(({ row }) => row.state === "stored")) window.location.assign(this.caseUrl);
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
      const input = form.querySelector<HTMLInputElement>("input[type=file]");
      const files = Array.from(input?.files ?? []);
      if (files.length === 0) return;
      pageOf(form).add(files);
      form.reset();
      input?.dispatchEvent(new Event("change", { bubbles: true }));
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
      (error: unknown) => toast(error instanceof Error ? error.message : "It could not be given up.", "error"),
    );
  });
}
