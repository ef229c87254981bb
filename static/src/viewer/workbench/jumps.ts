/** Views before each jump: Shift+B returns to them, step by step. */

import type { ViewState } from "../map/view_animation";
import type { MapView } from "../map/map_view";
import type { RoiLayer } from "../rois/rendering/roi_layer";
import type { VideoPlayer } from "../video/player";

const MAX_STOPS = 100;

interface Stop {
  view: ViewState;
  frameIndex: number | null;
  selectedId: string | null;
  /** Undo other effects of the jump. */
  undo?: () => void;
}

export class Jumps {
  private readonly stops: Stop[] = [];

  constructor(
    private readonly mapView: MapView,
    private readonly layer: RoiLayer,
    private readonly player: VideoPlayer | null,
  ) {}

  /** Store the current view; to be called before a jump. */
  record(undo?: () => void): void {
    const frameIndex = this.player?.frame?.index ?? null;
    this.stops.push({ view: this.mapView.place(), frameIndex, selectedId: this.layer.selectedId, ...(undo ? { undo } : {}) });
    if (this.stops.length > MAX_STOPS) this.stops.shift();
  }

  /** Return to the view before the last jump; false if there was none. */
  async back(): Promise<boolean> {
    const stop = this.stops.pop();
    if (!stop) return false;
    if (this.player && stop.frameIndex !== null) await this.player.seek(stop.frameIndex);
    this.mapView.goTo(stop.view);
    stop.undo?.();
    this.layer.select(stop.selectedId);
    return true;
  }
}
