/** Description and properties of the selected ROI; some properties have a type set by the lab. */

import { element, required } from "../../../dom/elements";
import { freeText, titleOf } from "../store/property_types";
import type { PropertyType } from "../store/property_types";
import type { Properties } from "../../lib/types";
import { ordinaryProperties } from "../shapes/fixed_size";
import type { RoiState } from "../store/roi_state";

type Change = (state: RoiState, patch: { description?: string; properties?: Properties }, label: string) => void;

/** "Grade: 2; Margin: clear". */
export function propertiesText(properties: Properties = {}): string {
  return Object.entries(properties).map(([key, value]) => `${key}: ${value}`).join("; ");
}

/** "Grade 1 → 2", "Margin none → clear": what a version changed of the one before it. */
export function propertyChanges(before: Properties = {}, after: Properties = {}): string[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  const changed = keys.filter((key) => before[key] !== after[key]);
  return changed.map((key) => `${key} ${before[key] ?? "none"} → ${after[key] ?? "none"}`);
}

export class PropertiesPanel {
  private readonly rows: HTMLElement;
  private readonly description: HTMLTextAreaElement;
  private readonly added: HTMLInputElement | null;
  private state: RoiState | null = null;
  private isEditable = false;

  constructor(
    private readonly host: HTMLElement,
    private readonly count: HTMLElement,
    private readonly types: PropertyType[],
    private readonly canAnnotate: boolean,
    private readonly change: Change,
  ) {
    this.rows = required(host, "[data-property-rows]");
    this.description = required<HTMLTextAreaElement>(host, "[data-roi-description]");
    this.added = host.querySelector("[data-property-key]");
    this.description.addEventListener("change", () => this.describe());
    host.querySelector("form")?.addEventListener("submit", (event) => {
      event.preventDefault();
      this.add();
    });
  }

  show(state: RoiState): void {
    if (this.state && this.state !== state && this.host.contains(document.activeElement)) this.leave();
    const isOther = this.state !== state;
    this.state = state;
    this.isEditable = this.canAnnotate && !state.locked;
    const number = Object.keys(ordinaryProperties(state.properties)).length + (state.description ? 1 : 0);
    this.count.textContent = number ? String(number) : "";
    this.description.readOnly = !this.isEditable;
    if (isOther || document.activeElement !== this.description) this.description.value = state.description;
    if (this.added) this.added.disabled = !this.isEditable;
    if (isOther || !this.rows.contains(document.activeElement)) this.fill(state);
  }

  /** Blur the focused field, so that its change is saved on the previous ROI. */
  private leave(): void {
    (document.activeElement as HTMLElement | null)?.blur();
  }

  private describe(): void {
    const { state } = this;
    const description = this.description.value.trim();
    if (state && description !== state.description) this.change(state, { description }, "Describe");
  }

  private fill(state: RoiState): void {
    const used = new Set(Object.keys(state.properties).map((key) => key.toLowerCase()));
    const typed = new Set(this.types.map((type) => type.key.toLowerCase()));
    const free = Object.keys(ordinaryProperties(state.properties)).filter((key) => !typed.has(key.toLowerCase()));
    const rows = [
      ...this.types.filter((type) => !type.retired || used.has(type.key.toLowerCase())).map((type) => this.row(state, type)),
      ...free.map((key) => this.row(state, freeText(key))),
    ];
    this.rows.replaceChildren(...rows);
  }

  private row(state: RoiState, type: PropertyType): HTMLElement {
    const key = Object.keys(state.properties).find((name) => name.toLowerCase() === type.key.toLowerCase()) ?? type.key;
    const value = state.properties[key] ?? "";
    const input = this.input(type, value);
    const set = (): void => this.set(state, key, input.value.trim());
    input.addEventListener("change", set);
    const id = `property-${type.key.replace(/\W+/g, "-").toLowerCase()}`;
    input.id = id;
    const isStoredLocally = this.types.includes(type);
    const isFree = !isStoredLocally || type.retired;
    const title = isStoredLocally ? titleOf(type) : key;
    const remove = element("button", { type: "button", class: "btn btn--quiet btn--small", "aria-label": `Remove ${title}`, click: () => this.set(state, key, "") }, "×");
    return element("div", { class: "property-row" }, element("label", { for: id }, title), input, ...(isFree && this.isEditable ? [remove] : []));
  }

  private input(type: PropertyType, value: string): HTMLInputElement | HTMLSelectElement {
    const choices = type.kind === "yes-no" ? ["yes", "no"] : type.choices;
    if (type.kind === "choice" || type.kind === "yes-no") {
      const known = choices.includes(value) || !value ? choices : [...choices, value];
      const select = element("select", { class: "input", disabled: !this.isEditable }, element("option", { value: "" }, "–"), ...known.map((one) => element("option", { value: one }, one)));
      select.value = value;
      return select;
    }
    const kind = type.kind === "number" ? "number" : "text";
    return element("input", { class: "input", type: kind, step: "any", value, maxlength: "1000", autocomplete: "off", readonly: !this.isEditable });
  }

  private set(state: RoiState, key: string, value: string): void {
    if ((state.properties[key] ?? "") === value) return;
    const rest = Object.entries(state.properties).filter(([one]) => one !== key);
    const properties = Object.fromEntries(value ? [...rest, [key, value]] : rest);
    this.change(state, { properties }, value ? `Set ${key}` : `Remove ${key}`);
    if (state === this.state && !this.rows.contains(document.activeElement)) this.fill(state);
  }

  /** A row for a new key; it is saved once it has a value. */
  private add(): void {
    const word = this.added?.value.trim().replace(/\s+/g, " ") ?? "";
    if (!this.state || !word || !this.isEditable) return;
    const type = this.types.find((type) => type.name.toLowerCase() === word.toLowerCase());
    const key = type?.key ?? word; // the word may be the shown name of a key that the lab has set
    const known = this.rows.querySelector<HTMLElement>(`#property-${CSS.escape(key.replace(/\W+/g, "-").toLowerCase())}`);
    if (!known) this.rows.append(this.row(this.state, freeText(key)));
    if (this.added) this.added.value = "";
    (known ?? this.rows.lastElementChild?.querySelector<HTMLElement>("input"))?.focus();
  }
}
