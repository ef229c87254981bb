/** The panel with which the look of the image is changed, and its button. */

import { required } from "../../dom/elements";
import { PLAIN, isPlain } from "../map/look";
import type { Look, Shown } from "../map/look";
import { LookFilter } from "../map/look_filter";

const SLIDERS = ["brightness", "contrast", "gamma"] as const;
/** Sliders of factors go by powers of two: the middle changes nothing. */
const FACTORS = new Set<string>(["contrast", "gamma"]);

export class LookPanel {
  private look: Look = { ...PLAIN };
  private readonly host: HTMLElement;
  private readonly filter: LookFilter;

  constructor(private readonly root: HTMLElement, private readonly giveFocus: () => void) {
    this.host = required(root, "[data-look-panel]");
    this.filter = new LookFilter(required(root, ".stage"));
    this.shown.addEventListener("change", () => this.change({ shown: this.shown.value as Shown }));
    for (const name of SLIDERS) {
      const input = this.slider(name);
      input.addEventListener("input", () => this.change({ [name]: valueOf(name, input.valueAsNumber) }));
    }
    required(this.host, "[data-look-reset]").addEventListener("click", () => this.reset());
    required(this.host, "[data-look-close]").addEventListener("click", () => this.toggle());
    this.host.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.toggle();
    });
  }

  /** Open with the focus in it, or closed with the focus on the image. */
  toggle(): void {
    this.host.hidden = !this.host.hidden;
    for (const button of this.root.querySelectorAll("[data-action=look]")) {
      button.setAttribute("aria-expanded", String(!this.host.hidden));
    }
    if (this.host.hidden) this.giveFocus();
    else this.shown.focus();
  }

  private get shown(): HTMLSelectElement {
    return required<HTMLSelectElement>(this.host, "[data-look-shown]");
  }

  private slider(name: string): HTMLInputElement {
    return required<HTMLInputElement>(this.host, `[data-look-slider=${name}]`);
  }

  private change(part: Partial<Look>): void {
    this.look = { ...this.look, ...part };
    this.filter.show(this.look);
    for (const name of SLIDERS) {
      const value = this.look[name];
      const text = FACTORS.has(name) ? `${value.toFixed(2)}×` : `${value > 0 ? "+" : ""}${Math.round(100 * value)} %`;
      required(this.host, `[data-look-value=${name}]`).textContent = text;
      this.slider(name).setAttribute("aria-valuetext", text);
    }
    for (const button of this.root.querySelectorAll("[data-action=look]")) {
      button.toggleAttribute("data-changed", !isPlain(this.look));
    }
  }

  private reset(): void {
    this.shown.value = PLAIN.shown;
    for (const name of SLIDERS) this.slider(name).value = "0";
    this.change(PLAIN);
  }
}

function valueOf(name: string, position: number): number {
  return FACTORS.has(name) ? 2 ** position : position;
}
