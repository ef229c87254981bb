/** Places regions of a fixed size where it is clicked; their outlines follow the pointer. */

import Feature from "ol/Feature";
import PointerInteraction from "ol/interaction/Pointer";
import VectorLayer from "ol/layer/Vector";
import type OlMap from "ol/Map";
import type MapBrowserEvent from "ol/MapBrowserEvent";
import VectorSource from "ol/source/Vector";

import { geometryFromL0, l0FromMap } from "../../map/pixel_plane";
import { viewportOf } from "../../map/viewport";
import { isPrimary } from "../drawing/draw_interaction";
import { PROPOSAL_STYLE } from "../drawing/suggestion";
import type { FixedSizePlanner } from "../drawing/fixed_size_planner";
import type { Position } from "../../lib/types";

export class FixedSizeTool extends PointerInteraction {
  private readonly source = new VectorSource<Feature>({ wrapX: false });
  private readonly ghost = new VectorLayer({ source: this.source, style: PROPOSAL_STYLE, updateWhileInteracting: true, className: "canvas-fixed-size" });
  private at: Position | null = null;
  private isPressed = false;

  constructor(
    private readonly map: OlMap,
    private readonly planner: FixedSizePlanner,
    private readonly isPanning: () => boolean,
    private readonly onRelease: (at: Position) => void,
  ) {
    super();
    map.addLayer(this.ghost);
    viewportOf(map).addEventListener("pointerleave", this.hide);
    planner.onChange = () => this.show(this.at);
  }

  leave(): void {
    this.planner.onChange = () => undefined;
    this.map.removeLayer(this.ghost);
    viewportOf(this.map).removeEventListener("pointerleave", this.hide);
  }

  /** True if the pointer was down: nothing is placed. */
  cancel(): boolean {
    const wasPressed = this.isPressed;
    this.isPressed = false;
    return wasPressed;
  }

  override handleMoveEvent(event: MapBrowserEvent): void {
    this.show(this.isPanning() ? null : l0FromMap(event.coordinate));
  }

  override handleDownEvent(event: MapBrowserEvent): boolean {
    this.isPressed = !this.isPanning() && isPrimary(event);
    if (this.isPressed) this.show(l0FromMap(event.coordinate));
    return this.isPressed;
  }

  override handleDragEvent(event: MapBrowserEvent): void {
    if (this.isPressed) this.show(l0FromMap(event.coordinate));
  }

  override handleUpEvent(event: MapBrowserEvent): boolean {
    if (this.cancel()) this.onRelease(l0FromMap(event.coordinate));
    return false;
  }

  private show(at: Position | null): void {
    this.at = at;
    this.source.clear();
    if (at) this.source.addFeatures(this.planner.plan(at).map(({ geometry }) => new Feature(geometryFromL0(geometry))));
  }

  private readonly hide = (): void => this.show(null);
}
