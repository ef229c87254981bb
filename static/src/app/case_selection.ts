/**
 * Selection of rows in the list of cases, and its actions: tag, describe, share, assign. A click with Shift selects all
 * rows since the last click, as do Shift and the arrow keys. Each search replaces the table; rows that are still in it
 * stay selected.
 */
import type { Schemas } from "../api/schemas";
import { required } from "../dom/elements";
import { isTyping } from "../dom/focus";
import { API_ROOT, ApiError, postJson } from "../dom/http";
import { toast } from "./toasts";

type Result = Schemas["BulkResult"];
type DetailsResult = Schemas["DetailsResult"];
type Selection = { cases: string[] } | { filter: Record<string, string> };

const MAX_PROBLEMS = 3; // named in a message; the number of the others follows

export function watchCaseSelection(): void {
  if (document.querySelector("[data-case-selection]") || document.getElementById("tag-cases")) new CaseSelection();
}

class CaseSelection {
  private readonly chosen = new Set<string>();
  private isAll = false;
  private last: HTMLInputElement | null = null;

  constructor() {
    document.addEventListener("click", (event) => this.click(event));
    document.addEventListener("change", (event) => this.change(event));
    document.addEventListener("keydown", (event) => this.handleKey(event));
    document.addEventListener("submit", (event) => this.submit(event));
    // afterSwap comes before the new rows are painted or clicked, load also after going back
    for (const name of ["htmx:afterSwap", "htmx:load"]) document.addEventListener(name, () => this.keep());
    this.keep();
  }

  private ticks(): HTMLInputElement[] {
    return [...document.querySelectorAll<HTMLInputElement>("[data-case-tick]")];
  }

  private findBar(): HTMLElement | null {
    return document.querySelector<HTMLElement>("[data-case-selection]");
  }

  private count(): number {
    return this.isAll ? Number(this.findBar()?.dataset.total) : this.chosen.size;
  }

  /** Keep the selection of rows that the new table contains, also those that the browser ticked on going back. */
  private keep(): void {
    const ticks = this.ticks();
    const before = new Set(this.chosen);
    this.chosen.clear();
    this.last = null;
    for (const tick of ticks) {
      tick.checked ||= this.isAll || before.has(tick.value);
      if (tick.checked) this.chosen.add(tick.value);
    }
    this.show();
  }

  private click(event: MouseEvent): void {
    const target = event.target as Element;
    const tick = target.closest<HTMLInputElement>("[data-case-tick]");
    if (tick) this.tick(tick, event.shiftKey);
    else if (target.closest("[data-selection-clear]")) this.clear();
    else if (target.closest("[data-selection-go]")) this.openPage(target.closest<HTMLElement>("[data-selection-go]"));
    else if (target.closest("[data-selection-export]")) void this.export();
    else if (target.closest("[data-selection-all]")) {
      for (const box of this.ticks()) this.set(box, true);
      this.isAll = true;
      this.show();
    }
  }

  private change(event: Event): void {
    const all = event.target as HTMLInputElement;
    if (all.form?.dataset.selectionForm === "details" && all.name === "clear") fields(all.form);
    if (!all.matches("[data-case-tick-all]")) return;
    this.isAll = false;
    for (const tick of this.ticks()) this.set(tick, all.checked);
    this.show();
  }

  private tick(tick: HTMLInputElement, isRange: boolean): void {
    this.isAll = false;
    const ticks = this.ticks();
    const from = this.last ? ticks.indexOf(this.last) : -1;
    const to = ticks.indexOf(tick);
    const range = isRange && from >= 0 ? ticks.slice(Math.min(from, to), Math.max(from, to) + 1) : [tick];
    for (const box of range) this.set(box, tick.checked);
    this.last = tick;
    this.show();
  }

  private handleKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const tick = event.target as HTMLInputElement;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && tick.matches("[data-case-tick]")) {
      const ticks = this.ticks();
      const next = ticks[ticks.indexOf(tick) + by];
      event.preventDefault();
      next?.focus();
      if (next && event.shiftKey) {
        for (const box of [tick, next]) this.set(box, true);
        this.isAll = false;
        this.last = next;
        this.show();
      }
    } else if (event.key === "Escape" && this.chosen.size && !isTyping(event.target)) {
      this.clear();
    }
  }

  private set(tick: HTMLInputElement, isChosen: boolean): void {
    tick.checked = isChosen;
    if (isChosen) this.chosen.add(tick.value);
    else this.chosen.delete(tick.value);
  }

  private clear(): void {
    this.isAll = false;
    for (const tick of this.ticks()) this.set(tick, false);
    this.chosen.clear();
    this.last = null;
    this.show();
  }

  private show(): void {
    const ticks = this.ticks();
    const all = document.querySelector<HTMLInputElement>("[data-case-tick-all]");
    if (all) {
      all.checked = ticks.length > 0 && this.chosen.size === ticks.length;
      all.indeterminate = this.chosen.size > 0 && !all.checked;
    }
    for (const tick of ticks) tick.closest("tr")?.classList.toggle("is-chosen", tick.checked);
    const bar = this.findBar();
    if (!bar) return;
    bar.hidden = this.chosen.size === 0;
    required(bar, "[data-selection-count]").textContent = `${this.count()} chosen`;
    const more = bar.querySelector<HTMLElement>("[data-selection-all]");
    if (more) more.hidden = this.isAll;
    for (const title of document.querySelectorAll("[data-selection-title]")) title.textContent = cases(this.count());
  }

  private selection(): Selection {
    if (!this.isAll) return { cases: [...this.chosen] };
    return { filter: JSON.parse(this.findBar()?.dataset.filter ?? "{}") as Record<string, string> };
  }

  /** Go to the page of a button, which reads the selection from its query string. */
  private openPage(button: HTMLElement | null): void {
    const url = new URL(button?.dataset.selectionGo ?? "", location.href);
    const selection = this.selection();
    if ("cases" in selection) for (const id of selection.cases) url.searchParams.append("cases", id);
    else {
      url.searchParams.set("all", "1");
      for (const [name, value] of Object.entries(selection.filter)) {
        if (name !== "lab") url.searchParams.set(name, value); // the address of the button names it
      }
    }
    location.assign(url);
  }

  /** Go to the page of the job that writes the exports. */
  private async export(): Promise<void> {
    try {
      const job = await postJson<Schemas["Job"]>(`${API_ROOT}/cases/bulk/export/`, this.selection());
      location.assign(`/cases/exports/${job.id}/`);
    } catch (error) {
      toast(error instanceof ApiError ? error.message : "That did not work.", "error");
    }
  }

  private submit(event: SubmitEvent): void {
    const form = event.target as HTMLFormElement;
    const kind = form.dataset.selectionForm;
    if (!kind) return;
    event.preventDefault();
    const formData = new FormData(form);
    const data = Object.fromEntries(formData) as Record<string, string>;
    const button = event.submitter as HTMLButtonElement | null;
    if (kind === "share") void this.share(form, data);
    else if (kind === "details") void this.describe(form, data, formData.getAll("clear") as string[]);
    else void this.tag(form, data.tag?.trim() ?? "", button?.value === "remove" ? "remove" : "add");
  }

  private async tag(form: HTMLFormElement, tag: string, change: "add" | "remove"): Promise<void> {
    const result = await this.send<Result>(form, "tags", { ...this.selection(), [change]: [tag] });
    if (!result) return;
    form.reset();
    const sentence = `“${tag}” ${change === "add" ? "added to" : "removed from"} ${cases(result.changed.length)}`;
    const back = change === "add" ? "remove" : "add";
    const undo = (): void => void this.undo("tags", [{ cases: result.changed, [back]: [tag] }]);
    announce(sentence, result, result.changed.length ? undo : undefined);
    refresh();
  }

  /** Set or clear organ and diagnosis; an empty field that is not to be cleared changes nothing. */
  private async describe(form: HTMLFormElement, data: Record<string, string>, cleared: string[]): Promise<void> {
    const set = ["organ", "diagnosis"].filter((name) => data[name]?.trim());
    const details: Record<string, string> = {};
    for (const name of set) details[name] = data[name] ?? "";
    for (const name of cleared) details[name] = "";
    const result = await this.send<DetailsResult>(form, "details", { ...this.selection(), ...details });
    if (!result) return;
    form.reset();
    fields(form);
    const sentence = `${changes({ set, cleared })} for ${cases(result.changed.length)}`;
    announce(sentence, result, result.changed.length ? () => void this.undo("details", result.before) : undefined);
    refresh();
  }

  private async undo(path: string, bodies: object[]): Promise<void> {
    const total: Result = { changed: [], unchanged: 0, problems: [] };
    try {
      for (const body of bodies) {
        const part = await postJson<Result>(`${API_ROOT}/cases/bulk/${path}/`, body);
        total.changed.push(...part.changed);
        total.unchanged += part.unchanged;
        total.problems.push(...part.problems);
      }
      for (const id of total.changed) this.chosen.add(id); // the change may have taken its row off the list
      announce(`Undone for ${cases(total.changed.length)}`, total);
    } catch (error) {
      toast(error instanceof ApiError ? error.message : "That did not work.", "error");
    }
    refresh();
  }

  private async share(form: HTMLFormElement, data: Record<string, string>): Promise<void> {
    const result = await this.send<Result>(form, "shares", { ...this.selection(), ...data });
    if (result) announce(`${cases(result.changed.length)} offered to ${data.with_lab}`, result);
  }

  /** Send a change and close the dialog; null if all was refused, in which case the dialog shows the reason. */
  private async send<R extends Result>(form: HTMLFormElement, path: string, body: object): Promise<R | null> {
    const problem = required(form, "[data-selection-problem]");
    const buttons = document.querySelectorAll<HTMLButtonElement>(`button[form="${form.id}"]`);
    problem.hidden = true;
    buttons.forEach((button) => (button.disabled = true));
    try {
      const result = await postJson<R>(`${API_ROOT}/cases/bulk/${path}/`, body);
      form.closest("dialog")?.close();
      return result;
    } catch (error) {
      problem.textContent = error instanceof ApiError ? error.message.replace(/^\w+(, \w+)*: /, "") : "That did not work.";
      problem.hidden = false;
      return null;
    } finally {
      buttons.forEach((button) => (button.disabled = false));
    }
  }
}

function cases(count: number): string {
  return count === 1 ? "1 case" : `${count} cases`;
}

/** Disable the text of fields that are to be cleared. */
function fields(form: HTMLFormElement): void {
  for (const box of form.querySelectorAll<HTMLInputElement>("input[name=clear]")) {
    required<HTMLInputElement>(form, `input[name=${box.value}]`).disabled = box.checked;
  }
}

/** ``Organ set, diagnosis cleared``. */
function changes(names: Record<string, string[]>): string {
  const parts = Object.entries(names).filter(([, of]) => of.length);
  const text = parts.map(([verb, of]) => `${of.join(" and ")} ${verb}`).join(", ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function announce(done: string, result: Result, undo?: () => void): void {
  const { problems } = result;
  const problemLines = problems.slice(0, MAX_PROBLEMS).map((problem) => `${problem.accession || "A deleted case"}: ${problem.detail}`);
  if (problems.length > MAX_PROBLEMS) problemLines.push(`And ${problems.length - MAX_PROBLEMS} more.`);
  const refused = problems.length ? `, ${problems.length} could not be changed. ${problemLines.join(" ")}` : ".";
  const same = result.unchanged ? ` ${cases(result.unchanged)} needed no change.` : "";
  const kind = problems.length ? "warning" : "success";
  toast(`${done}${refused}${same}`, kind, undo ? { label: "Undo", run: undo } : undefined);
}

function refresh(): void {
  const here = location.pathname + location.search;
  void window.htmx.ajax("get", here, { target: "#cases", swap: "outerHTML" });
}
