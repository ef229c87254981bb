/** Brush tool: adds the painted area to the selected ROI, with Alt removes it. */

import Feature from "ol/Feature";
import LineString from "ol/geom/LineString";
import PointerInteraction from "ol/interaction/Pointer";
import VectorLayer from "ol/layer/Vector";
import type OlMap from "ol/Map";
import type MapBrowserEvent from "ol/MapBrowserEvent";
import VectorSource from "ol/source/Vector";
import Stroke from "ol/style/Stroke";
import Style from "ol/style/Style";
import { asArray } from "ol/color";
import { primaryAction } from "ol/events/condition";

import { element } from "../../../dom/elements";
import { l0FromMap } from "../../map/pixel_plane";
import { viewportOf } from "../../map/viewport";
import { strokeArea } from "../shapes/areas";
import type { Painting } from "./painting";
import type { Position } from "../../lib/types";

const RADIUS_SCREEN_PX = { first: 20, min: 3, max: 200 };
/** Factor between two brush sizes. */
const STEP = 1.25;
/** Points of the way nearer to each other than this share of the radius add nothing. */
const SPACING = 0.1;

export class Brush extends PointerInteraction {
  private static radius = RADIUS_SCREEN_PX.first; // kept from one use to the next
  private readonly ring = element("div", { class: "brush-ring", "aria-hidden": "true", hidden: true });
  private readonly way = new LineString([]);
  private readonly trail: VectorLayer;
  private isErasing = false;
  private isExtending = false;

  constructor(
    private readonly map: OlMap,
    private readonly painting: Painting,
    private readonly color: () => string,
    private readonly isPanning: () => boolean,
    private readonly showNotice: (text: string) => void,
  ) {
    super();
    this.trail = new VectorLayer({
      source: new VectorSource({ features: [new Feature(this.way)] }),
      style: () => this.trailStyle(),
      updateWhileInteracting: true,
      className: "canvas-brush",
    });
    map.addLayer(this.trail);
    viewportOf(map).append(this.ring);
    viewportOf(map).addEventListener("pointerleave", this.hide);
  }

  /** Change the radius by one step, in screen pixels. */
  resize(larger: boolean): void {
    const next = Brush.radius * (larger ? STEP : 1 / STEP);
    Brush.radius = Math.min(Math.max(next, RADIUS_SCREEN_PX.min), RADIUS_SCREEN_PX.max);
    this.sizeRing();
    this.showNotice(`Brush: ${Math.round(2 * Brush.radius)} px on screen.`);
  }

  leave(): void {
    this.map.removeLayer(this.trail);
    viewportOf(this.map).removeEventListener("pointerleave", this.hide);
    this.ring.remove();
  }

  /** True if a stroke was under way: it is dropped. */
  cancel(): boolean {
    const isDrawing = this.way.getCoordinates().length > 0;
    this.way.setCoordinates([]);
    return isDrawing;
  }

  override handleMoveEvent(event: MapBrowserEvent): void {
    const [x = 0, y = 0] = event.pixel;
    this.ring.hidden = this.isPanning();
    this.ring.style.left = `${x}px`;
    this.ring.style.top = `${y}px`;
    this.ring.toggleAttribute("data-erasing", event.originalEvent.altKey);
    this.sizeRing();
  }

  override handleDownEvent(event: MapBrowserEvent): boolean {
    if (this.isPanning() || !primaryAction(event) || (event.activePointers?.length ?? 1) > 1) return false;
    this.isErasing = event.originalEvent.altKey;
    this.isExtending = event.originalEvent.shiftKey;
    this.way.setCoordinates([event.coordinate]);
    this.handleMoveEvent(event);
    return true;
  }

  override handleDragEvent(event: MapBrowserEvent): void {
    this.handleMoveEvent(event);
    const way = this.way.getCoordinates();
    const [x = 0, y = 0] = event.coordinate;
    const [lastX = 0, lastY = 0] = way.at(-1) ?? [];
    if (!way.length) return; // another finger came down, or Esc was pressed
    if (Math.hypot(x - lastX, y - lastY) >= SPACING * this.radius) this.way.appendCoordinate(event.coordinate);
  }

  override handleUpEvent(event: MapBrowserEvent): boolean {
    const way = this.way.getCoordinates();
    if (!way.length) return false;
    way.push(event.coordinate);
    this.way.setCoordinates([]);
    const points = way.map((at): Position => l0FromMap(at));
    const stroke = strokeArea(points, this.radius);
    const start = strokeArea(points.slice(0, 1), this.radius);
    if (!stroke || !start) return false;
    const target = this.painting.target(start, this.isErasing, this.isExtending);
    const problem = this.painting.apply(stroke, target, this.isErasing, this.resolution);
    if (problem) this.showNotice(problem);
    return false;
  }

  private get resolution(): number {
    return this.map.getView().getResolution() ?? 1;
  }

  /** Radius in level-0 pixels. */
  private get radius(): number {
    return Brush.radius * this.resolution;
  }

  private sizeRing(): void {
    this.ring.style.width = this.ring.style.height = `${2 * Brush.radius}px`;
  }

  private readonly hide = (): void => {
    this.ring.hidden = true;
  };

  private trailStyle(): Style {
    const [red = 0, green = 0, blue = 0] = this.isErasing ? [255, 255, 255] : asArray(this.color());
    const width = 2 * Brush.radius;
    return new Style({ stroke: new Stroke({ color: [red, green, blue, 0.4], width, lineCap: "round", lineJoin: "round" }) });
  }
}
