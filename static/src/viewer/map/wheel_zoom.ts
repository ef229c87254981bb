/**
 * The wheel zooms at its first click. OpenLayers waits 80 ms for further clicks and then aborts a running zoom; this
 * zoom continues to the target of all clicks. Trackpads are left to OpenLayers.
 */

import type MapBrowserEvent from "ol/MapBrowserEvent";
import MouseWheelZoom from "ol/interaction/MouseWheelZoom";

/** Wheel delta that doubles the image: two and a half clicks of most wheels. */
const DELTA_PER_DOUBLING = 300;
/** Pixels per unit, for browsers that report lines or pages instead. */
const DELTA_OF = [1, 40, 300];
/** A trackpad begins with less, and goes on within the gap. */
const SMALLEST_CLICK = 4;
const SERIES_GAP_MS = 400;

export class WheelZoom extends MouseWheelZoom {
  private isTrackpad = false;
  private zoomedAt = -Infinity;

  constructor(private readonly zoomAround: (anchor: number[], factor: number) => void) {
    super();
  }

  override handleEvent(event: MapBrowserEvent<WheelEvent>): boolean {
    if (event.type !== "wheel") return super.handleEvent(event);
    const { deltaY, deltaMode, timeStamp } = event.originalEvent;
    const delta = deltaY * (DELTA_OF[deltaMode] ?? 1);
    if (timeStamp - this.zoomedAt > SERIES_GAP_MS) this.isTrackpad = Math.abs(delta) < SMALLEST_CLICK;
    this.zoomedAt = timeStamp;
    if (this.isTrackpad) return super.handleEvent(event);
    event.originalEvent.preventDefault();
    const steps = Math.max(-1, Math.min(1, delta / DELTA_PER_DOUBLING));
    if (steps) this.zoomAround(event.coordinate, 2 ** -steps);
    return false;
  }
}
