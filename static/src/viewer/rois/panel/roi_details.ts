/** Details and actions of the selected ROI. */

import { element, required } from "../../../dom/elements";
import type { Labels } from "../store/labels";
import type { RoiEdits } from "../store/edits";
import { PropertiesPanel } from "./properties";
import type { PropertyType } from "../store/property_types";
import { Revisions } from "./revisions";
import type { RoiLayer } from "../rendering/roi_layer";
import type { RoiState } from "../store/roi_state";
import type { RoiShape } from "../../lib/types";
import type { RoiStore } from "../store/roi_store";
import { fixedSizeOf, fixedSizeText } from "../shapes/fixed_size";
import { isArea } from "../shapes/outlines";
import { sizeText, timeText } from "../../lib/units";

export interface DetailActions {
  canAnnotate: boolean;
  propertyTypes: PropertyType[];
  zoomTo: (state: RoiState) => void;
  remove: () => void;
  /** The label the next ROI gets. */
  useLabel: (id: string | null) => void;
}

const SIZES: Partial<Record<RoiShape, string>> = { point: "Points", line: "Length" };

export class Details {
  private readonly host: HTMLElement;
  private readonly name: HTMLInputElement;
  private readonly label: HTMLSelectElement;
  private readonly revisions: Revisions;
  private readonly properties: PropertiesPanel;
  private state: RoiState | null = null;

  constructor(
    root: HTMLElement,
    private readonly store: RoiStore,
    private readonly edits: RoiEdits,
    layer: RoiLayer,
    private readonly labels: Labels,
    private readonly actions: DetailActions,
  ) {
    this.host = required(root, "[data-roi-details]");
    this.name = required<HTMLInputElement>(this.host, "[data-roi-name]");
    this.label = required<HTMLSelectElement>(this.host, "[data-roi-label]");
    this.properties = new PropertiesPanel(required(root, "#roi-properties"), required(root, "[data-properties-count]"), actions.propertyTypes, actions.canAnnotate, (state, patch, text) => edits.change(state, patch, text));
    this.revisions = new Revisions(required(root, "#roi-history"), edits, labels, actions.canAnnotate);
    this.fillLabels();
    labels.on("list", () => this.fillLabels());
    labels.on("display", () => this.showColor());
    this.name.disabled = this.label.disabled = !actions.canAnnotate;
    this.name.addEventListener("change", () => this.rename());
    this.name.addEventListener("keydown", (event) => this.nameKey(event));
    this.label.addEventListener("change", () => this.setLabel(this.label.value || null));
    required(this.host, "[data-roi-zoom]").addEventListener("click", () => this.state && actions.zoomTo(this.state));
    this.host.querySelector("[data-roi-delete]")?.addEventListener("click", () => actions.remove());
    layer.on("select", (state) => this.show(state));
  }

  /** Set the label, from the picker or a number key. */
  setLabel(id: string | null): void {
    this.actions.useLabel(id);
    if (!this.state || !this.actions.canAnnotate || this.state.label === id) return;
    this.edits.change(this.state, { label: id }, "Set label");
  }

  private fillLabels(): void {
    const options = this.labels.all.map((label) => {
      const key = label.key ? `${label.key}  ` : "";
      return element("option", { value: label.id }, `${key}${this.labels.indented(label)}`);
    });
    this.label.replaceChildren(element("option", { value: "" }, "No label"), ...options);
    if (this.state) this.showLabel(this.state.label);
  }

  private showColor(): void {
    this.host.style.setProperty("--roi-color", this.labels.colorOf(this.state?.label ?? null));
  }

  /** Options of the picker; a retired label is still shown for ROIs that have it. */
  private showLabel(id: string | null): void {
    this.label.querySelector("[data-retired]")?.remove();
    const label = this.labels.get(id);
    if (label?.retired) {
      const option = element("option", { value: label.id, "data-retired": "" }, `${label.name} (retired)`);
      this.label.append(option);
    }
    this.label.value = id ?? "";
  }

  private rename(): void {
    const name = this.name.value.trim();
    if (this.state && name !== this.state.name) this.edits.change(this.state, { name }, "Rename");
  }

  private nameKey(event: KeyboardEvent): void {
    if (event.key === "Enter") this.name.blur();
    if (event.key === "Escape" && this.state) {
      this.name.value = this.state.name;
      this.name.blur();
    }
  }

  private show(state: RoiState | null): void {
    const isOther = state !== this.state;
    if (isOther && this.state && document.activeElement === this.name) this.rename();
    this.state = state;
    this.host.hidden = !state;
    if (!state) return;
    if (isOther || document.activeElement !== this.name) this.name.value = state.name;
    this.showLabel(state.label);
    this.name.disabled = this.label.disabled = !this.actions.canAnnotate || state.locked;
    this.showColor();
    this.showFacts(state);
    this.showSimilar(state);
    this.showFollowup(state);
    const problem = required(this.host, "[data-roi-problem]");
    problem.hidden = !state.problem;
    problem.textContent = state.problem?.message ?? "";
    this.properties.show(state);
    this.revisions.show(state);
    this.store.refreshEmbedded(state);
  }

  /** Link to similar cases; for shared ROIs the search runs in the user's own lab. */
  private showSimilar(state: RoiState): void {
    const link = this.host.querySelector<HTMLAnchorElement>("[data-roi-similar]");
    if (!link) return;
    const isSaved = state.server !== null;
    link.hidden = !isArea(state.geometry);
    link.href = isSaved ? `/rois/${state.id}/similar/` : "#";
    link.setAttribute("aria-disabled", String(!isSaved));
    link.title = isSaved ? "Find regions that look like this one" : "Available once the region is saved";
  }

  /** Offer to find the place of an endoscopic ROI in another examination of the patient. */
  private showFollowup(state: RoiState): void {
    const link = this.host.querySelector<HTMLAnchorElement>("[data-roi-followup]");
    if (!link) return;
    link.hidden = !isArea(state.geometry);
    link.href = state.server ? `/rois/${state.id}/followup/` : "#";
    link.setAttribute("aria-disabled", String(!state.server));
  }

  private showFacts(state: RoiState): void {
    const { server, frame } = state;
    const facts: [string, string][] = [];
    facts.push([SIZES[state.shape] ?? "Area", server ? sizeText(server) : "not measured yet"]);
    const size = fixedSizeOf(state.properties, server?.area_um2 ?? null);
    if (size) facts.push(["Fixed size", fixedSizeText(size)]);
    if (frame) facts.push(["Frame", `${frame.index + 1} (${timeText(frame.time_s)})`]);
    facts.push(["Version", server ? String(server.version) : "not saved yet"]);
    const isSearched = this.host.querySelector("[data-roi-similar]") !== null;
    if (server && isSearched && isArea(state.geometry) && !server.is_embedded) facts.push(["Similar cases", "being prepared"]);
    const rows = facts.map(([term, text]) => element("div", {}, element("dt", {}, term), element("dd", {}, text)));
    required(this.host, "[data-roi-facts]").replaceChildren(...rows);
  }
}
