/** The list of ROIs: colour, name, area; a click goes there. Filters, an order, a count, an empty state. */

import { element, required, swatch } from "../../../dom/elements";
import { UNLABELLED } from "../store/labels";
import type { Labels } from "../store/labels";
import type { RoiLayer } from "../rendering/roi_layer";
import type { RoiState } from "../store/roi_state";
import type { RoiStore } from "../store/roi_store";
import { fixedSizeOf, fixedSizeText } from "../shapes/fixed_size";
import { areaUnit, sizeText, timeText } from "../../lib/units";
import type { AreaUnit } from "../../lib/units";
import { oncePerFrame } from "../../lib/scheduling";
import { VirtualList } from "../../lib/virtual_list";
import { ANY, passesFilter, restrictionCount, sorted } from "./roi_filter";
import type { RoiFilter } from "./roi_filter";

/** Height of a row, as in viewer/panel.css: fixed, so that rows need not be measured. */
const ROW_HEIGHT_PX = 36;

export class RoiList {
  private readonly list: VirtualList<RoiState>;
  private readonly listHost: HTMLElement;
  private readonly filter: HTMLSelectElement;
  private readonly search: HTMLInputElement;
  private readonly more: HTMLElement;
  private readonly queue = oncePerFrame(() => this.refresh());
  private areaUnit: AreaUnit = "µm²";

  constructor(
    private readonly root: HTMLElement,
    private readonly store: RoiStore,
    private readonly layer: RoiLayer,
    private readonly labels: Labels,
    private readonly goTo: (state: RoiState) => void,
  ) {
    this.listHost = required(root, "[data-roi-list]");
    this.filter = required<HTMLSelectElement>(root, "[data-roi-filter]");
    this.search = required<HTMLInputElement>(root, "[data-roi-search]");
    this.list = new VirtualList(this.listHost, ROW_HEIGHT_PX, (state, index) => this.row(state, index));
    this.more = required(root, "[data-roi-more]");
    this.fillFilter();
    this.filter.addEventListener("change", () => this.applyFilter());
    this.search.addEventListener("input", () => this.applyFilter());
    this.more.addEventListener("input", () => this.applyFilter());
    required(this.more, "[data-roi-filter-reset]").addEventListener("click", () => this.resetMore());
    labels.on("list", () => this.fillFilter());
    labels.on("display", () => this.applyFilter());
    if (labels.display.hidden.length) this.applyFilter();
    for (const name of ["added", "removed", "changed", "loaded"] as const) store.on(name, () => this.queue());
    store.on("error", (message) => this.showError(message));
    required(root, "[data-roi-reload]").addEventListener("click", () => void store.load());
    layer.on("select", (state) => this.followSelection(state));
    layer.on("selection", () => this.queue());
    this.listHost.addEventListener("keydown", (event) => this.handleKey(event));
  }

  private fillFilter(): void {
    const options: [string, string][] = [[ANY, "All labels"]];
    for (const label of this.labels.all) options.push([label.id, label.name]);
    options.push([UNLABELLED, "No label"]);
    fill(this.filter, options);
  }

  /** Authors of the loaded ROIs. */
  private fillAuthors(): void {
    const select = this.choice("author");
    const authors = new Set(this.store.existingObjects().map(({ server }) => server?.created_by ?? ""));
    authors.delete("");
    const names = [...authors].sort((a, b) => a.localeCompare(b));
    if (select.value && !authors.has(select.value)) names.push(select.value);
    const isSame = Array.from(select.options, ({ value }) => value).join("\n") === [ANY, ...names].join("\n");
    if (!isSame) fill(select, [[ANY, "Anybody"], ...names.map((name): [string, string] => [name, name])]);
  }

  private choice(name: string): HTMLSelectElement {
    return required<HTMLSelectElement>(this.more, `[data-roi-${name}]`);
  }

  private number(name: string): number | null {
    const value = required<HTMLInputElement>(this.more, `[data-roi-${name}]`).valueAsNumber;
    return Number.isFinite(value) ? value : null;
  }

  private chosenFilter(): RoiFilter {
    return {
      label: this.filter.value,
      text: this.search.value,
      author: this.choice("author").value,
      reviewState: this.more.querySelector<HTMLSelectElement>("[data-roi-review-state]")?.value ?? ANY,
      minArea: this.number("min-area"),
      maxArea: this.number("max-area"),
    };
  }

  private resetMore(): void {
    for (const field of this.more.querySelectorAll<HTMLInputElement | HTMLSelectElement>("input, select")) field.value = "";
    this.applyFilter();
  }

  /**
   * Show on the map only ROIs of the list; an ROI that was just given another label stays visible until it is
   * deselected.
   */
  private applyFilter(): void {
    const filter = this.chosenFilter();
    this.layer.setFilter("label", (state) => passesFilter(state, filter, this.labels) || this.layer.selectedIds.has(state.id));
    this.queue();
  }

  private matching(): RoiState[] {
    const filter = this.chosenFilter();
    const states = this.store.existingObjects().filter((state) => passesFilter(state, filter, this.labels));
    return sorted(states, this.choice("order").value, this.labels);
  }

  private refresh(): void {
    this.fillAuthors();
    const states = this.matching();
    const count = restrictionCount(this.chosenFilter());
    required(this.more, "[data-roi-restrictions]").textContent = count ? `(${count})` : "";
    const { total, isWindowed } = this.store;
    const number = (value: number): string => value.toLocaleString("en");
    const shownText = states.length === total ? number(total) : `${number(states.length)} of ${number(total)}`;
    required(this.root, "[data-roi-count]").textContent = shownText;
    const note = required(this.root, "[data-roi-windowed]");
    note.hidden = !isWindowed;
    note.textContent = this.store.isLoadingWindow ? "Loading the regions in view…" : windowText(this.store.states.size, this.store.inWindow);
    required(this.root, "[data-roi-empty]").hidden = states.length > 0 || total > 0;
    required(this.root, "[data-roi-no-match]").hidden = states.length > 0 || this.store.existingObjects().length === 0;
    required(this.root, "[data-roi-loading]").hidden = true;
    required(this.root, "[data-roi-error]").hidden = true;
    this.listHost.hidden = states.length === 0;
    this.areaUnit = areaUnit(states.map(({ server }) => server?.area_um2));
    this.list.show(states);
  }

  private showError(message: string): void {
    required(this.root, "[data-roi-loading]").hidden = true;
    const host = required(this.root, "[data-roi-error]");
    required(host, "p").textContent = `The regions could not be loaded. ${message}`;
    host.hidden = false;
  }

  private row(state: RoiState, index: number): HTMLElement {
    const isSelected = this.layer.selectedIds.has(state.id);
    const label = this.labels.get(state.label);
    const title = state.name || label?.name || "Unnamed region";
    const facts: string[] = [];
    if (state.name) facts.push(this.labels.nameOf(state.label));
    const size = fixedSizeOf(state.properties, state.server?.area_um2 ?? null);
    facts.push(size ? fixedSizeText(size) : state.server ? sizeText(state.server, this.areaUnit) : "new");
    if (state.frame) facts.push(`frame ${state.frame.index + 1}, ${timeText(state.frame.time_s)}`);
    const row = element(
      "div",
      {
        role: "option",
        id: `roi-row-${state.id}`,
        class: "roi-row",
        "aria-selected": String(isSelected),
        "data-roi": state.id,
        click: (event) => this.handleRowClick(index, event as MouseEvent),
      },
      swatch(this.labels.colorOf(state.label)),
      element("span", { class: "roi-row-title" }, title),
      element("span", { class: "roi-row-facts" }, facts.join(" · ")),
    );
    const sign = stateSign(state);
    if (sign) row.append(sign);
    return row;
  }

  /** Go to an ROI; with Shift or Ctrl, add it to the selection. */
  private handleRowClick(index: number, event: MouseEvent): void {
    const state = this.list.at(index);
    if (state && (event.shiftKey || event.ctrlKey || event.metaKey)) this.layer.toggleSelected(state.id);
    else this.choose(index);
  }

  private choose(index: number): void {
    const state = this.list.at(index);
    if (!state) return;
    this.goTo(state);
    this.listHost.focus({ preventScroll: true });
  }

  private followSelection(state: RoiState | null): void {
    this.queue();
    if (!state) {
      this.listHost.removeAttribute("aria-activedescendant");
      return;
    }
    this.listHost.setAttribute("aria-activedescendant", `roi-row-${state.id}`);
    requestAnimationFrame(() => {
      const index = this.matching().indexOf(state);
      if (index >= 0) this.list.reveal(index);
    });
  }

  private handleKey(event: KeyboardEvent): void {
    const now = this.matching().findIndex((state) => state.id === this.layer.selectedId);
    const last = this.list.length - 1;
    const targets: Record<string, number> = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: last };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(target, 0), last));
  }
}

/** Note shown while only a part of the ROIs is loaded. */
export function windowText(shown: number, inWindow: number): string {
  const number = (value: number): string => value.toLocaleString("en");
  if (inWindow <= shown) return "Many regions: those in view are shown, tiny ones as dots.";
  return `The largest ${number(shown)} of ${number(inWindow)} in view, tiny ones as dots. Zoom in for the others.`;
}

function stateSign(state: RoiState): HTMLElement | null {
  if (state.locked && !state.problem) return element("span", { class: "roi-row-sign is-locked", title: "Locked" }, "locked");
  if (state.problem) {
    return element("span", { class: "roi-row-sign is-bad", title: state.problem.message }, "not saved");
  }
  if (!state.isSettled) return element("span", { class: "roi-row-sign" }, "saving");
  return null;
}

/** Replace the options of a choice; what was chosen stays chosen. */
function fill(select: HTMLSelectElement, options: [string, string][]): void {
  const before = select.value;
  select.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
  if (before) select.value = before;
}
