/** The panel of the tool for fixed sizes: kind, and number, size and spacing of a grid. */

import { required } from "../../dom/elements";
import { FixedSizePlanner } from "../rois/drawing/fixed_size_planner";
import { isValid, loadChoice, storeChoice, MAX_FIELDS, MAX_FIELD_MM2, MAX_SPACING_UM, MIN_FIELD_MM2 } from "../rois/drawing/fixed_size_choice";
import type { FixedSizeChoice } from "../rois/drawing/fixed_size_choice";
import type { TissueMap } from "../rois/drawing/tissue_map";
import { areaMm2Of, areaMm2Text, sideUmOf } from "../rois/shapes/fixed_size";
import type { Scale } from "../rois/shapes/fixed_size";
import { isArea } from "../rois/shapes/outlines";
import type { RoiGeometry } from "../lib/types";
import type { Tools } from "../rois/tools/tools";
import type { Parts } from "./parts";

/** The planner of an image; null if the size of its pixels is unknown. */
export function fixedSizePlanner({ canvas, layer }: Pick<Parts, "canvas" | "layer">, tissue: TissueMap): FixedSizePlanner | null {
  const { mpp_x, mpp_y } = canvas;
  if (!mpp_x || !mpp_y) return null;
  const scale: Scale = [mpp_x, mpp_y];
  const region = (): RoiGeometry | null => layer.selection.find(({ geometry }) => isArea(geometry))?.geometry ?? null;
  return new FixedSizePlanner(loadChoice(), { canvas, scale, region, tissueShare: (bounds) => tissue.share(bounds) });
}

export function connectFixedSizes({ root, layer, mapView }: Parts, tools: Tools, planner: FixedSizePlanner | null, tissue: TissueMap): void {
  const host = root.querySelector<HTMLElement>("[data-fixed-size]");
  if (host && planner) new FixedSizePanel(host, tools, planner, tissue, { layer, giveFocus: () => mapView.target.focus({ preventScroll: true }) });
}

class FixedSizePanel {
  constructor(
    private readonly host: HTMLElement,
    private readonly tools: Tools,
    private readonly planner: FixedSizePlanner,
    private readonly tissue: TissueMap,
    private readonly page: { layer: Parts["layer"]; giveFocus: () => void },
  ) {
    this.fill(planner.choice);
    host.addEventListener("input", (event) => this.read(event.target));
    host.addEventListener("submit", (event) => {
      event.preventDefault();
      page.giveFocus(); // Enter then places in the middle of the view
    });
    host.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.leave();
    });
    required(host, "[data-fixed-size-close]").addEventListener("click", () => this.leave());
    tools.on("tool", (tool) => this.follow(tool === "fixed"));
    page.layer.on("selection", () => this.showRegion());
    page.layer.on("select", () => this.showRegion());
  }

  private leave(): void {
    this.tools.use("move");
    this.page.giveFocus();
  }

  private follow(isActive: boolean): void {
    this.host.hidden = !isActive;
    if (!isActive) return;
    this.showRegion();
    if (this.planner.choice.onTissue) void this.loadTissue();
  }

  private async loadTissue(): Promise<void> {
    await this.tissue.load().catch(() => undefined); // without it, all of the image counts as tissue
    this.planner.onChange();
  }

  private input(name: string): HTMLInputElement {
    return required<HTMLInputElement>(this.host, `[name=${name}]`);
  }

  private fill(choice: FixedSizeChoice): void {
    required<HTMLInputElement>(this.host, `[name=fixed-kind][value=${choice.kind}]`).checked = true;
    this.input("field-count").value = String(choice.count);
    this.input("field-area").value = String(choice.areaMm2);
    this.input("field-side").value = sideUmOf(choice.areaMm2).toFixed(1);
    this.input("field-spacing").value = String(choice.spacingUm);
    this.input("field-inside").checked = choice.insideRegion;
    this.input("field-tissue").checked = choice.onTissue && this.tissue.isAvailable;
    this.input("field-tissue").disabled = !this.tissue.isAvailable;
    this.show(choice);
  }

  /** Area and side are one number in two units: the one that was typed sets the other. */
  private read(changed: EventTarget | null): void {
    const [area, side] = [this.input("field-area"), this.input("field-side")];
    if (changed === side) area.value = String(Number(areaMm2Of(side.valueAsNumber).toPrecision(6)));
    else if (changed === area) side.value = sideUmOf(area.valueAsNumber).toFixed(1);
    const choice: FixedSizeChoice = {
      kind: required<HTMLInputElement>(this.host, "[name=fixed-kind]:checked").value as FixedSizeChoice["kind"],
      count: this.input("field-count").valueAsNumber,
      areaMm2: area.valueAsNumber,
      spacingUm: this.input("field-spacing").valueAsNumber,
      insideRegion: this.input("field-inside").checked,
      onTissue: this.input("field-tissue").checked,
    };
    this.show(choice);
    if (!isValid(choice)) return;
    this.planner.choice = choice;
    storeChoice(choice);
    if (choice.onTissue) void this.loadTissue();
  }

  private show(choice: FixedSizeChoice): void {
    required(this.host, "[data-fixed-size-grid]").hidden = choice.kind !== "grid";
    const sum = required(this.host, "[data-fixed-size-sum]");
    sum.classList.toggle("field__error", !isValid(choice));
    sum.textContent = isValid(choice)
      ? `${choice.count} ${choice.count === 1 ? "field" : "fields"}, ${areaMm2Text(choice.count * choice.areaMm2)}`
      : `1 to ${MAX_FIELDS} fields of ${MIN_FIELD_MM2} to ${MAX_FIELD_MM2} mm², up to ${MAX_SPACING_UM / 1000} mm apart.`;
  }

  /** Show a note if no region is selected for "inside the selected region". */
  private showRegion(): void {
    const hasRegion = this.page.layer.selection.some(({ geometry }) => isArea(geometry));
    required(this.host, "[data-fixed-size-no-region]").hidden = hasRegion;
    this.planner.onChange();
  }
}
