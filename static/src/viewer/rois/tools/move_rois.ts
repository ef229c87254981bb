/** Drags selected ROIs with the pointer; elsewhere a drag pans the image. */

import PointerInteraction from "ol/interaction/Pointer";
import { noModifierKeys, primaryAction } from "ol/events/condition";
import { containsExtent } from "ol/extent";
import LineString from "ol/geom/LineString";
import MultiLineString from "ol/geom/MultiLineString";
import MultiPoint from "ol/geom/MultiPoint";
import Point from "ol/geom/Point";
import type MapBrowserEvent from "ol/MapBrowserEvent";

import type { RoiCommands } from "./commands";
import { isUnder } from "../rendering/roi_layer";
import type { RoiFeature, RoiLayer } from "../rendering/roi_layer";
import type { Position } from "../../lib/types";
import type { GeometryOnMap } from "../../map/pixel_plane";

/** Smaller movements are clicks. */
const MIN_SCREEN_PX = 4;

export class MoveRois extends PointerInteraction {
  private from: Position = [0, 0];
  private by: Position = [0, 0];
  private isMoving = false;
  private features: RoiFeature[] = [];

  constructor(
    private readonly layer: RoiLayer,
    private readonly commands: () => RoiCommands | null,
    private readonly isIdle: () => boolean,
  ) {
    super();
  }

  override handleDownEvent(event: MapBrowserEvent): boolean {
    if (!this.isIdle() || !primaryAction(event) || !noModifierKeys(event)) return false;
    if (event.activePointers && event.activePointers.length > 1) return false;
    this.features = this.unlocked();
    if (!this.features.some((feature) => isGrabbed(feature, event))) return false;
    this.from = pointerAt(event);
    this.by = [0, 0];
    this.isMoving = false;
    this.layer.isModifying = true;
    return true;
  }

  override handleDragEvent(event: MapBrowserEvent): void {
    const [x, y] = pointerAt(event);
    const next: Position = [x - this.from[0], y - this.from[1]];
    const minDistance = MIN_SCREEN_PX * (event.map.getView().getResolution() ?? 1);
    this.isMoving ||= Math.hypot(...next) >= minDistance;
    if (!this.isMoving) return;
    this.show([next[0] - this.by[0], next[1] - this.by[1]]);
    this.by = next;
  }

  override handleUpEvent(): boolean {
    this.show([-this.by[0], -this.by[1]]);
    this.layer.isModifying = false;
    const [x, y] = this.by;
    if (x || y) this.commands()?.move([x, -y], true);
    return false;
  }

  private show([x, y]: Position): void {
    for (const feature of this.features) feature.getGeometry()?.translate(x, y);
  }

  private unlocked(): RoiFeature[] {
    const states = this.layer.selection.filter((state) => !state.locked);
    return states.map((state) => this.layer.featureOf(state.id)).filter((feature) => feature !== null);
  }
}

/** Position of the pointer without snapping. */
function pointerAt(event: MapBrowserEvent): Position {
  const { originalEvent, map, coordinate } = event;
  const [x = 0, y = 0] = originalEvent instanceof MouseEvent ? map.getEventCoordinate(originalEvent) : coordinate;
  return [x, y];
}

/**
 * True if the pointer is in the ROI (near it for a line or point) and its edge is on screen: a drag inside an ROI
 * larger than the window pans.
 */
function isGrabbed(feature: RoiFeature, event: MapBrowserEvent): boolean {
  const geometry = feature.getGeometry();
  if (!geometry || !isHeld(geometry, event)) return false;
  const view = event.map.getView().calculateExtent(event.map.getSize());
  return !containsExtent(geometry.getExtent(), view);
}

function isHeld(geometry: GeometryOnMap, { coordinate, map }: MapBrowserEvent): boolean {
  const isLong = geometry instanceof LineString || geometry instanceof MultiLineString;
  const isMark = isLong || geometry instanceof Point || geometry instanceof MultiPoint;
  if (!isMark) return geometry.intersectsCoordinate(coordinate); // its edge is for its vertices
  return isUnder(geometry, coordinate, map.getView().getResolution() ?? 1);
}
