/** Panel of the selected ROIs: actions, a common label, and the simplification slider. */

import { element, required } from "../../../dom/elements";
import { stemOf } from "../../lib/file_names";
import type { PanelTabs } from "../../lib/panel_tabs";
import { areaText } from "../../lib/units";
import { geometryFromL0 } from "../../map/pixel_plane";
import { polygonsOf, simplified } from "../shapes/areas";
import { fixedSizeOf, gridText } from "../shapes/fixed_size";
import { isArea } from "../shapes/outlines";
import { areaOfAll } from "../tools/commands";
import type { RoiCommands } from "../tools/commands";
import type { Labels } from "../store/labels";
import type { RoiLayer } from "../rendering/roi_layer";
import { featureCollectionOf } from "../store/geojson_text";
import type { RoiState } from "../store/roi_state";
import type { CanvasData } from "../../lib/types";

/** The slider's steps are powers: fine where it matters. */
const TOLERANCE = { min: 0.1, max: 50, steps: 100 };

export interface PanelActions {
  remove: () => void;
  setLabel: (id: string | null) => void;
  split: () => void;
}

export class SelectionPanel {
  private readonly host: HTMLElement;
  private readonly label: HTMLSelectElement | null;
  private previewed: RoiState[] = [];

  constructor(
    root: HTMLElement,
    private readonly canvas: CanvasData,
    private readonly layer: RoiLayer,
    private readonly labels: Labels,
    private readonly commands: RoiCommands,
    private readonly tabs: PanelTabs,
    actions: PanelActions,
  ) {
    this.host = required(root, "[data-selection]");
    this.label = this.host.querySelector("[data-selection-label]");
    this.fillLabels();
    labels.on("list", () => this.fillLabels());
    this.label?.addEventListener("change", () => {
      actions.setLabel(this.label?.value || null);
      this.label?.blur(); // the keys belong to the image again
    });
    const run: Record<string, () => void> = {
      ...{ all: () => commands.selectAll(), like: () => commands.selectSameLabel(), duplicate: () => commands.duplicate() },
      ...{ lock: () => commands.toggleLock(), unite: () => commands.combine("unite"), remove: () => actions.remove() },
      ...{ subtract: () => commands.combine("subtract"), intersect: () => commands.combine("intersect") },
      ...{ split: () => actions.split(), holes: () => commands.fillHoles(), export: () => this.download() },
    };
    for (const button of root.querySelectorAll<HTMLElement>("[data-command]")) {
      button.addEventListener("click", () => run[button.dataset.command ?? ""]?.());
    }
    this.connectSlider();
    layer.on("selection", (states) => this.show(states));
    layer.on("select", () => this.show(layer.selection));
  }

  private fillLabels(): void {
    const before = this.label?.value;
    const options = this.labels.all.map((label) => element("option", { value: label.id }, this.labels.indented(label)));
    const several = element("option", { value: "several", disabled: true }, "Several labels");
    this.label?.replaceChildren(several, element("option", { value: "" }, "No label"), ...options);
    if (this.label && before !== undefined) this.label.value = before;
  }

  private show(states: RoiState[]): void {
    this.stopPreview();
    this.host.hidden = states.length === 0;
    const isOne = states.length < 2;
    for (const field of this.host.querySelectorAll<HTMLElement>("[data-for-several]")) field.hidden = isOne;
    const areas = states.filter(({ geometry }) => isArea(geometry)).length;
    for (const areaField of this.host.querySelectorAll<HTMLElement>("[data-for-areas]")) {
      areaField.hidden = areas < Number(areaField.dataset.forAreas);
    }
    const lock = this.host.querySelector("[data-command=lock]");
    if (lock) lock.textContent = states.length && states.every((state) => state.locked) ? "Unlock" : "Lock";
    if (isOne) return;
    this.tabs.open("roi-edit"); // the page for several
    const area = areaOfAll(states);
    const { mpp_x, mpp_y } = this.canvas;
    const areaUm2 = (px2: number): number | null => (mpp_x && mpp_y ? px2 * mpp_x * mpp_y : null);
    const text = areas ? ` · ${areaText(area, areaUm2(area))}` : "";
    const grid = gridText(states.map((state) => fixedSizeOf(state.properties, areaUm2(areaOfAll([state])))));
    required(this.host, "[data-selection-count]").textContent = grid ?? `${states.length} regions${text}`;
    const labels = new Set(states.map((state) => state.label ?? ""));
    if (this.label) this.label.value = labels.size === 1 ? ([...labels][0] ?? "") : "several";
  }

  private download(): void {
    const text = JSON.stringify(featureCollectionOf(this.layer.selection, this.canvas, this.labels));
    const href = URL.createObjectURL(new Blob([text], { type: "application/geo+json" }));
    const name = `${stemOf(this.canvas.name)}-selection.geojson`;
    element("a", { href, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  }

  private connectSlider(): void {
    const slider = this.host.querySelector<HTMLInputElement>("[data-simplify]");
    const apply = this.host.querySelector<HTMLButtonElement>("[data-simplify-apply]");
    if (!slider || !apply) return;
    slider.addEventListener("input", () => this.preview(toleranceAt(Number(slider.value))));
    apply.addEventListener("click", () => {
      this.stopPreview();
      this.commands.simplify(toleranceAt(Number(slider.value)) / (this.canvas.mpp_x ?? 1));
    });
    const box = this.host.querySelector("[data-simplify-box]");
    box?.addEventListener("toggle", () => this.stopPreview());
    box?.addEventListener("focusout", (event) => {
      if (!box.contains((event as FocusEvent).relatedTarget as Node | null)) this.stopPreview();
    });
  }

  /** Show the simplified outlines on the map without storing them. */
  private preview(tolerance: number): void {
    this.stopPreview();
    this.previewed = this.layer.selection.filter((state) => !state.locked);
    let [before, after] = [0, 0];
    for (const state of this.previewed) {
      const geometry = simplified(state.geometry, tolerance / (this.canvas.mpp_x ?? 1));
      before += polygonsOf(state.geometry).flat(2).length;
      after += polygonsOf(geometry).flat(2).length;
      this.layer.featureOf(state.id)?.setGeometry(geometryFromL0(geometry));
    }
    const unit = this.canvas.mpp_x ? "µm" : "px";
    const words = `${tolerance.toPrecision(2)} ${unit}: ${before} → ${after} points`;
    required(this.host, "[data-simplify-text]").textContent = words;
  }

  private stopPreview(): void {
    for (const state of this.previewed) this.layer.featureOf(state.id)?.setGeometry(geometryFromL0(state.geometry));
    this.previewed = [];
    const says = this.host.querySelector("[data-simplify-text]");
    if (says) says.textContent = "";
  }
}

/** Tolerance in µm, or in pixels if the scale is unknown. */
export function toleranceAt(step: number): number {
  return TOLERANCE.min * (TOLERANCE.max / TOLERANCE.min) ** (step / TOLERANCE.steps);
}
