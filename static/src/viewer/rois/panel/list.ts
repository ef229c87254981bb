/** The list of ROIs: colour, name, area; a click goes there. A label filter, a count, an empty state. */

import { element, required, swatch } from "../../../dom/elements";
import type { Labels } from "../saved/labels";
import type { RoiLayer } from "../shown/layer";
import type { RoiState } from "../saved/state";
import type { RoiStore } from "../saved/store";
import { sizeText, timeText } from "../../lib/units";
import { oncePerRedraw } from "../../lib/redraw";
import { VirtualList } from "../../lib/virtual_list";

/** Fixed, so that the list need not measure its rows; viewer/panel.css has the same. */
const ROW_HEIGHT_PX = 36;
/** Values of the filter that are not the id of a label. */
const ANY = "";
const NONE = "none";

export class RoiList {
  private readonly list: VirtualList<RoiState>;
  private readonly listHost: HTMLElement;
  private readonly filter: HTMLSelectElement;
  private readonly search: HTMLInputElement;
  private readonly queue = oncePerRedraw(() => this.refresh());

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
    this.fillFilter();
    this.filter.addEventListener("change", () => this.choseFilter());
    this.search.addEventListener("input", () => this.choseFilter());
    for (const name of ["added", "removed", "changed", "loaded"] as const) store.on(name, () => this.queue());
    store.on("error", (message) => this.showError(message));
    required(root, "[data-roi-reload]").addEventListener("click", () => void store.load());
    layer.on("select", (state) => this.followSelection(state));
    layer.on("choose", () => this.queue());
    this.listHost.addEventListener("keydown", (event) => this.key(event));
  }

  private fillFilter(): void {
    const options: [string, string][] = [[ANY, "All labels"]];
    for (const label of this.labels.all) options.push([label.id, label.name]);
    options.push([NONE, "No label"]);
    this.filter.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
  }

  /** The map shows what the list shows; what was just given another label stays until it is left. */
  private choseFilter(): void {
    this.layer.setFilter("label", (state) => this.matches(state) || this.layer.chosen.has(state.id));
    this.queue();
  }

  private matches(state: RoiState): boolean {
    const wanted = this.filter.value;
    if (wanted !== ANY && (state.label ?? NONE) !== wanted) return false;
    return saysAll(state, this.labels.nameOf(state.label), this.search.value);
  }

  private matching(): RoiState[] {
    return this.store.live().filter((state) => this.matches(state));
  }

  private refresh(): void {
    const states = this.matching();
    const { total, isWindowed } = this.store;
    const number = (value: number): string => value.toLocaleString("en");
    const shownText = states.length === total ? number(total) : `${number(states.length)} of ${number(total)}`;
    required(this.root, "[data-roi-count]").textContent = shownText;
    const note = required(this.root, "[data-roi-windowed]");
    note.hidden = !isWindowed;
    note.textContent = this.store.isLoadingWindow ? "Loading the ROIs in view…" : windowText(this.store.states.size, this.store.inWindow);
    required(this.root, "[data-roi-empty]").hidden = states.length > 0 || total > 0;
    required(this.root, "[data-roi-none-match]").hidden = states.length > 0 || total === 0 || (this.filter.value === ANY && !this.search.value.trim());
    required(this.root, "[data-roi-loading]").hidden = true;
    required(this.root, "[data-roi-error]").hidden = true;
    this.listHost.hidden = states.length === 0;
    this.list.show(states);
  }

  private showError(message: string): void {
    required(this.root, "[data-roi-loading]").hidden = true;
    const host = required(this.root, "[data-roi-error]");
    required(host, "p").textContent = `The ROIs could not be loaded. ${message}`;
    host.hidden = false;
  }

  private row(state: RoiState, index: number): HTMLElement {
    const isSelected = this.layer.chosen.has(state.id);
    const label = this.labels.get(state.label);
    const title = state.name || label?.name || "Unnamed ROI";
    const facts: string[] = [];
    if (state.name) facts.push(this.labels.nameOf(state.label));
    facts.push(state.server ? sizeText(state.server) : "new");
    if (state.frame) facts.push(`frame ${state.frame.index + 1}, ${timeText(state.frame.time_s)}`);
    const row = element(
      "div",
      {
        role: "option",
        id: `roi-row-${state.id}`,
        class: "roi-row",
        "aria-selected": String(isSelected),
        "data-roi": state.id,
        click: (event) => this.press(index, event as MouseEvent),
      },
      swatch(this.labels.colorOf(state.label)),
      element("span", { class: "roi-row-title" }, title),
      element("span", { class: "roi-row-facts" }, facts.join(" · ")),
    );
    const sign = stateSign(state);
    if (sign) row.append(sign);
    return row;
  }

  /** A click goes there; with Shift or Ctrl it adds to what is selected. */
  private press(index: number, event: MouseEvent): void {
    const state = this.list.at(index);
    if (state && (event.shiftKey || event.ctrlKey || event.metaKey)) this.layer.toggleChosen(state.id);
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

  private key(event: KeyboardEvent): void {
    const now = this.matching().findIndex((state) => state.id === this.layer.selectedId);
    const last = this.list.length - 1;
    const targets: Record<string, number> = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: last };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(target, 0), last));
  }
}

/** Each word stands in the name, the label, the description or the properties, in whatever case. */
export function saysAll(state: Pick<RoiState, "name" | "description" | "properties">, label: string, asked: string): boolean {
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const said = [state.name, label, state.description, ...Object.entries(state.properties).flat()].join("\n").toLowerCase();
  return words.every((word) => said.includes(word));
}

/** What is said where not all ROIs are on the page. */
export function windowText(shown: number, inWindow: number): string {
  const number = (value: number): string => value.toLocaleString("en");
  if (inWindow <= shown) return "Many ROIs: those in view are shown, tiny ones as dots.";
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
