/** The point tool: a click makes points, and the next clicks add to them until Enter or Esc. */

import type { RoiEdits } from "../store/edits";
import type { RoiLayer } from "../rendering/roi_layer";
import { verticesOf } from "../shapes/outlines";
import type { DrawContext } from "../drawing/draw_interaction";
import type { RoiState } from "../store/roi_state";
import { inHundredths } from "../../lib/units";
import type { Position } from "../../lib/types";

export class Points {
  constructor(
    private readonly layer: RoiLayer,
    private readonly edits: RoiEdits,
    private readonly context: DrawContext,
  ) {}

  add(at: Position): void {
    const placed = inHundredths(at);
    const state = this.open;
    if (!state) {
      const created = this.edits.create({ geometry: { type: "Point", coordinates: placed }, shape: "point" }, this.context.label(), this.context.frame());
      this.layer.select(created.id);
      return;
    }
    const coordinates = [...verticesOf(state.geometry), placed];
    this.edits.change(state, { geometry: { type: "MultiPoint", coordinates } }, "Add point");
  }

  /** End the current points; true if points were being added. */
  end(): boolean {
    const isOpen = this.open !== null;
    if (isOpen) this.layer.select(null);
    return isOpen;
  }

  private get open(): RoiState | null {
    const [only, ...others] = this.layer.selection;
    return only && !others.length && only.shape === "point" && !only.locked && !only.deleted ? only : null;
  }
}
