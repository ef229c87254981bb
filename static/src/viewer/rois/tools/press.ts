/** A press that acts where it is released, clicked or dragged: the image stays where it is. */

import PointerInteraction from "ol/interaction/Pointer";
import type MapBrowserEvent from "ol/MapBrowserEvent";

import { l0FromMap } from "../../map/pixel_plane";
import { isPrimary } from "../drawing/draw_interaction";
import type { Position } from "../../lib/types";

export class Press extends PointerInteraction {
  private isPressed = false;

  constructor(
    private readonly isPanning: () => boolean,
    private readonly onRelease: (at: Position) => void,
  ) {
    super();
  }

  cancel(): boolean {
    const wasPressed = this.isPressed;
    this.isPressed = false;
    return wasPressed;
  }

  override handleDownEvent(event: MapBrowserEvent): boolean {
    this.isPressed = !this.isPanning() && isPrimary(event);
    return this.isPressed;
  }

  override handleUpEvent(event: MapBrowserEvent): boolean {
    if (this.cancel()) this.onRelease(l0FromMap(event.coordinate));
    return false;
  }
}
