/** Applies brush and wand strokes: adds to the selected ROI, erases from it, or creates one. */

import { intersect, simplified, subtract, unite } from "../shapes/areas";
import { isArea } from "../shapes/outlines";
import type { DrawContext } from "../drawing/draw_interaction";
import type { RoiEdits } from "../store/edits";
import type { RoiLayer } from "../rendering/roi_layer";
import type { RoiState } from "../store/roi_state";
import type { RoiGeometry } from "../../lib/types";

/** Vertices closer to the line than this on screen are dropped. */
const TOLERANCE_SCREEN_PX = 0.5;

export class Painting {
  constructor(
    private readonly layer: RoiLayer,
    private readonly edits: RoiEdits,
    private readonly context: DrawContext,
  ) {}

  /** ROI that a stroke starting with this area changes; null: a new ROI, or nothing to erase. */
  target(start: RoiGeometry, isErasing: boolean, isExtending: boolean): RoiState | null {
    const states = this.layer.selection;
    if (isErasing || isExtending) return states.length === 1 && states[0] && isArea(states[0].geometry) ? states[0] : null;
    return states.find((state) => intersect(state.geometry, [start]) !== null) ?? null;
  }

  /** Apply a stroke as one step of the history; returns the error message, or an empty text. */
  apply(stroke: RoiGeometry, target: RoiState | null, isErasing: boolean, resolution: number): string {
    if (isErasing && !target) return "Select one area to erase from.";
    const old = target && !target.deleted ? target.geometry : null;
    const exact = isErasing && old ? subtract(old, [stroke]) : unite(old ? [old, stroke] : [stroke]);
    const geometry = exact && simplified(exact, TOLERANCE_SCREEN_PX * resolution);
    if (!target && geometry) {
      this.layer.select(this.edits.create({ geometry }, this.context.label(), this.context.frame()).id);
    } else if (target && geometry) {
      this.edits.change(target, { geometry }, isErasing ? "Erase" : "Paint");
    } else if (target) {
      this.edits.remove(target);
    }
    return "";
  }
}
