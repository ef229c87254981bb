/** Which label the next ROI gets: shown in its colour, chosen here or by the keys 1 to 9. */

import { element, required } from "../../../dom/elements";
import type { Labels } from "../store/labels";

export class NextLabel {
  private chosen: string | null = null;
  private readonly choice: HTMLSelectElement;

  constructor(
    private readonly root: HTMLElement,
    private readonly labels: Labels,
  ) {
    this.choice = required<HTMLSelectElement>(root, "[data-next-label]");
    this.fill();
    this.choice.addEventListener("change", () => this.use(this.choice.value || null));
    labels.on("list", () => this.fill());
    labels.on("display", () => this.showColor());
    this.showColor();
  }

  private fill(): void {
    const options = this.labels.all.map((label) => element("option", { value: label.id }, this.labels.indented(label)));
    this.choice.replaceChildren(element("option", { value: "" }, "No label"), ...options);
    this.choice.value = this.chosen ?? "";
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
    this.labels.setHidden(id, false); // new regions must be visible
    this.showColor();
  }

  private showColor(): void {
    required(this.root, "[data-next-color]").style.backgroundColor = this.color;
  }
}
