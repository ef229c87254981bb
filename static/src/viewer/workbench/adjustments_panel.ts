/** The panel for the display adjustments of the image, and its button. */

import { required } from "../../dom/elements";
import { UNADJUSTED, isUnadjusted } from "../map/adjustments";
import type { ImageAdjustments, Shown } from "../map/adjustments";
import { AdjustmentsFilter } from "../map/adjustments_filter";

const SLIDERS = ["brightness", "contrast", "gamma"] as const;
/** Sliders of factors go by powers of two: the middle changes nothing. */
const FACTORS = new Set<string>(["contrast", "gamma"]);

/** Effects of the panel outside of it. */
export interface AdjustmentsTargets {
  giveFocus: () => void;
  /** The stored values instead of colours by the file's profile. */
  showRaw: (isRaw: boolean) => void;
}

export class AdjustmentsPanel {
  private adjustments: ImageAdjustments = { ...UNADJUSTED };
  private readonly host: HTMLElement;
  private readonly filter: AdjustmentsFilter;

  constructor(
    private readonly root: HTMLElement,
    private readonly targets: AdjustmentsTargets,
  ) {
    this.host = required(root, "[data-adjustments-panel]");
    this.filter = new AdjustmentsFilter(required(root, ".stage"));
    this.channelSelect.addEventListener("change", () => this.change({ shown: this.channelSelect.value as Shown }));
    for (const name of SLIDERS) {
      const input = this.slider(name);
      input.addEventListener("input", () => this.change({ [name]: valueOf(name, input.valueAsNumber) }));
    }
    this.profile?.addEventListener("change", () => this.applyProfile());
    required(this.host, "[data-adjustments-reset]").addEventListener("click", () => this.reset());
    required(this.host, "[data-adjustments-close]").addEventListener("click", () => this.toggle());
    this.host.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.toggle();
    });
  }

  /** Open the panel and focus it, or close it and focus the image. */
  toggle(): void {
    this.host.hidden = !this.host.hidden;
    for (const button of this.root.querySelectorAll("[data-action=adjustments]")) {
      button.setAttribute("aria-expanded", String(!this.host.hidden));
    }
    if (this.host.hidden) this.targets.giveFocus();
    else this.channelSelect.focus();
  }

  private get channelSelect(): HTMLSelectElement {
    return required<HTMLSelectElement>(this.host, "[data-adjustments-channel]");
  }

  /** Checkbox of the colour profile; null if the file has none. */
  private get profile(): HTMLInputElement | null {
    return this.host.querySelector("[data-adjustments-profile]");
  }

  private get isRaw(): boolean {
    return this.profile?.checked === false;
  }

  private applyProfile(): void {
    this.targets.showRaw(this.isRaw);
    this.mark();
  }

  private slider(name: string): HTMLInputElement {
    return required<HTMLInputElement>(this.host, `[data-adjustments-slider=${name}]`);
  }

  private change(part: Partial<ImageAdjustments>): void {
    this.adjustments = { ...this.adjustments, ...part };
    this.filter.show(this.adjustments);
    for (const name of SLIDERS) {
      const value = this.adjustments[name];
      const text = FACTORS.has(name) ? `${value.toFixed(2)}×` : `${value > 0 ? "+" : ""}${Math.round(100 * value)} %`;
      required(this.host, `[data-adjustments-value=${name}]`).textContent = text;
      this.slider(name).setAttribute("aria-valuetext", text);
    }
    this.mark();
  }

  /** Mark the button if the colours are not those of the file. */
  private mark(): void {
    for (const button of this.root.querySelectorAll("[data-action=adjustments]")) {
      button.toggleAttribute("data-changed", this.isRaw || !isUnadjusted(this.adjustments));
    }
  }

  private reset(): void {
    this.channelSelect.value = UNADJUSTED.shown;
    for (const name of SLIDERS) this.slider(name).value = "0";
    this.change(UNADJUSTED);
    if (!this.profile || !this.isRaw) return;
    this.profile.checked = true;
    this.applyProfile();
  }
}

function valueOf(name: string, position: number): number {
  return FACTORS.has(name) ? 2 ** position : position;
}
