/**
 * The review queue: J accepts and K rejects the ticked regions, or the one shown; the arrow keys move through the
 * queue.
 */
import { required } from "../dom/elements";
import { isTyping } from "../dom/focus";
import { ApiError } from "../dom/http";
import { commentAdd, roisReview, threadGet, threadRows } from "../dom/review_thread";
import type { ThreadEntry, Verdict } from "../dom/review_thread";
import { toast } from "./toasts";

const DONE: Record<string, string> = {
  submitted: "submitted",
  accepted: "accepted",
  rejected: "rejected",
  draft: "taken back",
};

export function watchReview(): void {
  const root = document.querySelector<HTMLElement>("[data-review]");
  if (root) new ReviewQueue(root);
}

class ReviewQueue {
  private readonly rows: HTMLElement[];
  private readonly text: HTMLTextAreaElement;
  private at = -1;
  private thread: ThreadEntry[] = [];
  private isBusy = false;

  constructor(private readonly root: HTMLElement) {
    this.rows = [...root.querySelectorAll<HTMLElement>("[data-review-row]")];
    this.text = required<HTMLTextAreaElement>(root, "textarea");
    this.rows.forEach((row, index) => {
      pickOf(row).addEventListener("click", () => this.show(index));
      tickOf(row).addEventListener("change", () => this.countTicks());
    });
    const all = required<HTMLInputElement>(root, "[data-review-all]");
    all.addEventListener("change", () => {
      for (const row of this.open()) tickOf(row).checked = all.checked;
      this.countTicks();
    });
    for (const button of root.querySelectorAll<HTMLElement>("[data-review-to]")) {
      button.addEventListener("click", () => void this.judge(button.dataset.reviewTo ?? ""));
    }
    required(root, "[data-review-comment]").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.comment();
    });
    document.addEventListener("keydown", (event) => this.handleKey(event));
    this.show(0, false);
  }

  private open(): HTMLElement[] {
    return this.rows.filter((row) => !row.classList.contains("is-done"));
  }

  private handleKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") (event.target as HTMLElement).blur();
      return;
    }
    // Ignores key repeat, so that a held key judges one region only.
    const judgeAs = (state: string) => () => {
      if (!event.repeat) this.root.querySelector<HTMLElement>(`[data-review-to=${state}]`)?.click();
    };
    const keys: Record<string, () => void> = {
      j: judgeAs("accepted"),
      k: judgeAs("rejected"),
      s: judgeAs("submitted"),
      arrowdown: () => this.step(1),
      arrowup: () => this.step(-1),
      c: () => this.text.focus(),
      x: () => this.tick(),
    };
    const run = keys[event.key.toLowerCase()];
    if (run) {
      event.preventDefault();
      run();
    } else if (event.key === "Enter" && !(event.target as Element).closest("a, button, summary, input")) {
      required<HTMLAnchorElement>(this.root, "[data-review-open]").click();
    }
  }

  private step(by: number): void {
    for (let next = this.at + by; next >= 0 && next < this.rows.length; next += by) {
      if (!this.rows[next]?.classList.contains("is-done")) return this.show(next);
    }
  }

  private tick(): void {
    const row = this.rows[this.at];
    if (!row) return;
    tickOf(row).checked = !tickOf(row).checked;
    this.countTicks();
  }

  private show(index: number, isMoved = true): void {
    const row = this.rows[index];
    if (!row) return;
    this.rows[this.at]?.removeAttribute("aria-current");
    this.at = index;
    row.setAttribute("aria-current", "true");
    if (isMoved) row.scrollIntoView({ block: "nearest" });
    const pick = pickOf(row);
    const picture = required<HTMLImageElement>(this.root, "[data-review-picture]");
    picture.src = pick.dataset.picture ?? "";
    picture.alt = `The region in its surroundings: ${pick.innerText.replace(/\s+/g, " ")}`;
    required(this.root, "[data-review-title]").textContent = pick.dataset.title ?? "";
    required<HTMLAnchorElement>(this.root, "[data-review-open]").href = pick.dataset.open ?? "";
    this.text.value = "";
    this.showThread([]);
    void this.load(row);
    this.preload(index + 1);
  }

  private async load(row: HTMLElement): Promise<void> {
    try {
      const entries = await threadGet(idOf(row));
      if (this.rows[this.at] === row) this.showThread(entries);
    } catch {
      toast("The comments on this region could not be read.", "error");
    }
  }

  /** Preload the next picture. */
  private preload(index: number): void {
    const next = this.rows[index];
    if (next) new Image().src = pickOf(next).dataset.picture ?? "";
  }

  private showThread(entries: ThreadEntry[]): void {
    this.thread = entries;
    required(this.root, "[data-review-thread]").replaceChildren(...threadRows(entries));
  }

  private ticked(): HTMLElement[] {
    return this.open().filter((row) => tickOf(row).checked);
  }

  private countTicks(): void {
    const count = this.ticked().length;
    required(this.root, "[data-review-ticked]").textContent = count ? `${count} ticked` : "All on this page";
  }

  private async judge(state: string): Promise<void> {
    const shown = this.rows[this.at];
    const ticked = this.ticked();
    const rows = ticked.length ? ticked : this.open().filter((row) => row === shown);
    if (!rows.length || this.isBusy) return;
    const words = this.text.value.trim();
    if (state === "rejected" && !words) {
      this.text.focus();
      return toast("Say why it is rejected, then reject it: Esc, K.", "info");
    }
    await this.send(rows, state, words);
  }

  private async send(rows: HTMLElement[], state: string, words: string): Promise<void> {
    this.isBusy = true;
    try {
      const verdicts = await roisReview(rows.map((row) => ({ id: idOf(row), version: versionOf(row) })), state, words);
      this.applyVerdicts(rows, verdicts, state);
    } catch (error) {
      toast(error instanceof ApiError ? error.message : "That did not work.", "error");
    } finally {
      this.isBusy = false;
    }
  }

  private applyVerdicts(rows: HTMLElement[], verdicts: Verdict[], state: string): void {
    const decided: HTMLElement[] = [];
    const refused = new Map<string, number>();
    verdicts.forEach((verdict, index) => {
      const row = rows[index];
      if (!row) return;
      if (verdict.version) row.dataset.version = String(verdict.version);
      if (verdict.outcome === "done" || verdict.outcome === "unchanged") decided.push(row);
      else refused.set(verdict.detail, (refused.get(verdict.detail) ?? 0) + 1);
    });
    const isBack = state === this.root.dataset.state;
    for (const row of decided) {
      row.classList.toggle("is-done", !isBack);
      tickOf(row).checked = false;
    }
    for (const [detail, count] of refused) toast(count > 1 ? `${count}: ${detail}` : detail, "error");
    if (decided.length) this.announce(decided, state, isBack);
    this.countTicks();
    const shown = this.rows[this.at];
    if (shown && decided.includes(shown)) this.moveOn(isBack);
  }

  private announce(done: HTMLElement[], state: string, isBack: boolean): void {
    const text = `${done.length === 1 ? "Region" : `${done.length} regions`} ${DONE[state] ?? state}.`;
    const before = this.root.dataset.state ?? "";
    if (isBack) toast(text, "success");
    else toast(text, "success", { label: "Undo", run: () => void this.send(done, before, "") });
  }

  private moveOn(isBack: boolean): void {
    const before = this.at;
    if (!isBack) this.step(1);
    if (this.at === before && !isBack) this.step(-1);
    if (this.at === before) this.show(before);
  }

  private async comment(): Promise<void> {
    const row = this.rows[this.at];
    const words = this.text.value.trim();
    if (!row || !words) return;
    try {
      const added = await commentAdd(idOf(row), words);
      if (this.rows[this.at] !== row) return;
      this.text.value = "";
      this.showThread([...this.thread, added]);
      void this.load(row); // including comments of others
    } catch (error) {
      toast(error instanceof ApiError ? error.message : "The comment was not kept.", "error");
    }
  }
}

const idOf = (row: HTMLElement): string => row.dataset.roi ?? "";
const versionOf = (row: HTMLElement): number => Number(row.dataset.version);
const tickOf = (row: HTMLElement): HTMLInputElement => required<HTMLInputElement>(row, "[data-review-tick]");
const pickOf = (row: HTMLElement): HTMLElement => required(row, "[data-review-pick]");
