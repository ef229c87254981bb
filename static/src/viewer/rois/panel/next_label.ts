/** Which label the next ROI gets: shown in its colour, chosen here or by the keys 1 to 9. */

import { element, required } from "../../../dom/elements";
import type { Labels } from "../saved/labels";

export class NextLabel {
  private chosen: string | null = null;
  private readonly choice: HTMLSelectElement;

  constructor(
    private readonly root: HTMLElement,
    private readonly labels: Labels,
  ) {
    this.choice = required<HTMLSelectElement>(root, "[data-next-label]");
    const options = labels.all.map((label) => element("option", { value: label.id }, labels.indented(label)));
    this.choice.replaceChildren(element("option", { value: "" }, "No label"), ...options);
    this.choice.addEventListener("change", () => this.use(this.choice.value || null));
    this.use(null);
  }

  get id(): string | null {
    return this.chosen;
  }

  get color(): string {
    return this.labels.colorOf(this.chosen);
  }

  use(id: string | null): void {
    this.chosen = id;
    this.choice.value = id ?? "";
    required(this.root, "[data-next-color]").style.backgroundColor = this.color;
  }
}
