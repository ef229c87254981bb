/** The labels with the number of their regions: shown or hidden, their colour on this screen, a new one. */

import { element, required } from "../../../dom/elements";
import { oncePerFrame } from "../../lib/scheduling";
import type { Label } from "../../lib/types";
import { labelCreate } from "../store/api";
import { NO_CHANGES } from "../store/label_display";
import { UNLABELLED, UNLABELLED_COLOR } from "../store/labels";
import type { Labels } from "../store/labels";
import type { RoiStore } from "../store/roi_store";

export class LabelPanel {
  private readonly host: HTMLElement;
  private readonly rows: HTMLElement;
  private readonly opacity: HTMLInputElement;
  private readonly queue = oncePerFrame(() => this.refresh());

  constructor(
    root: HTMLElement,
    private readonly labels: Labels,
    private readonly store: RoiStore,
    /** Called with a label that was just made. */
    private readonly useLabel: (id: string) => void,
  ) {
    this.host = required(root, "[data-label-panel]");
    this.rows = required(this.host, "[data-label-rows]");
    this.opacity = required<HTMLInputElement>(this.host, "[data-label-opacity]");
    this.opacity.addEventListener("input", () => labels.setDisplay({ opacity: this.opacity.valueAsNumber / 100 }));
    required(this.host, "[data-label-all]").addEventListener("click", () => labels.setDisplay({ hidden: [] }));
    required(this.host, "[data-label-none]").addEventListener("click", () => labels.setDisplay({ hidden: this.ids() }));
    required(this.host, "[data-label-reset]").addEventListener("click", () => labels.setDisplay(NO_CHANGES));
    const form = this.host.querySelector("form");
    form?.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.create(form);
    });
    for (const name of ["added", "removed", "changed", "loaded"] as const) store.on(name, () => this.queue());
    labels.on("list", () => this.drawRows());
    labels.on("display", () => this.queue());
    this.drawRows();
  }

  private ids(): string[] {
    return [...this.labels.all.map(({ id }) => id), UNLABELLED];
  }

  private drawRows(): void {
    this.rows.replaceChildren(...this.labels.all.map((label) => this.row(label)), this.row(null));
    this.refresh();
  }

  private row(label: Label | null): HTMLElement {
    const id = label?.id ?? UNLABELLED;
    const name = label?.name ?? "No label";
    const check = element("input", { type: "checkbox", id: `label-shown-${id}`, "data-label-shown": id });
    check.addEventListener("change", () => this.labels.setHidden(label?.id ?? null, !check.checked));
    const color = element("input", { type: "color", "aria-label": `Colour of ${name}`, title: "Colour on this screen", "data-label-color": id });
    color.disabled = label === null;
    color.addEventListener("input", () => this.labels.setColor(id, color.value));
    const text = element("label", { for: check.id, title: name }, label ? this.labels.indented(label) : name);
    return element("li", { class: "label-row" }, check, color, text, element("span", { class: "label-count", "data-label-count": id }));
  }

  private refresh(): void {
    const counts = new Map<string, number>();
    for (const { label } of this.store.existingObjects()) counts.set(label ?? UNLABELLED, (counts.get(label ?? UNLABELLED) ?? 0) + 1);
    for (const id of this.ids()) {
      const label = id === UNLABELLED ? null : id;
      required<HTMLInputElement>(this.rows, `[data-label-shown="${id}"]`).checked = !this.labels.isHidden(label);
      required<HTMLInputElement>(this.rows, `[data-label-color="${id}"]`).value = label ? this.labels.colorOf(label) : UNLABELLED_COLOR;
      required(this.rows, `[data-label-count="${id}"]`).textContent = (counts.get(id) ?? 0).toLocaleString("en");
    }
    const { hidden, opacity, colors } = this.labels.display;
    this.opacity.value = String(Math.round(opacity * 100));
    const hiddenCount = this.ids().filter((id) => hidden.includes(id)).length;
    required(this.host, "[data-label-hidden]").textContent = hiddenCount ? `(${hiddenCount} hidden)` : "";
    required<HTMLButtonElement>(this.host, "[data-label-reset]").disabled = !hidden.length && opacity === 1 && !Object.keys(colors).length;
  }

  private async create(form: HTMLFormElement): Promise<void> {
    const name = required<HTMLInputElement>(form, "[data-label-name]");
    const problem = required(this.host, "[data-label-problem]");
    const button = required<HTMLButtonElement>(form, "button");
    problem.hidden = true;
    button.disabled = true;
    try {
      const label = await labelCreate({ lab: form.dataset.lab ?? "", name: name.value.trim() });
      this.labels.add(label);
      this.useLabel(label.id);
      name.value = "";
    } catch (error) {
      problem.textContent = error instanceof Error ? error.message : "The label was not added.";
      problem.hidden = false;
    } finally {
      button.disabled = false;
    }
  }
}
