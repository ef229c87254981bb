/** The wand: a press takes what has the colour under the pointer, a drag to the right takes more. */

import Feature from "ol/Feature";
import MultiPolygon from "ol/geom/MultiPolygon";
import PointerInteraction from "ol/interaction/Pointer";
import VectorLayer from "ol/layer/Vector";
import type OlMap from "ol/Map";
import type MapBrowserEvent from "ol/MapBrowserEvent";
import VectorSource from "ol/source/Vector";
import { primaryAction } from "ol/events/condition";

import { geometryFromL0, l0FromMap } from "../../map/pixel_plane";
import { viewportOf } from "../../map/viewport";
import { oncePerFrame } from "../../lib/scheduling";
import { areaOf, simplified } from "../shapes/areas";
import type { Painting } from "./painting";
import { floodFilled, ringsOf, smoothed } from "../shapes/flood_fill";
import type { Pixels } from "../shapes/flood_fill";
import { sketchStyle } from "../rendering/styles";
import type { Position, RoiGeometry } from "../../lib/types";

/** Tolerance of a click: two neighbouring shades of a stain. */
const FIRST_TOLERANCE = 24;
const TOLERANCE_PER_PX = 0.4;
const SMOOTHING_PX = 2;
/** Corners of pixels become slopes. */
const SIMPLIFY_SCREEN_PX = 0.8;
const IMAGE_LAYERS = ".canvas-thumbnail, .canvas-tiles, .canvas-frame";

export class Wand extends PointerInteraction {
  private readonly source = new VectorSource<Feature>();
  private readonly preview: VectorLayer;
  private picture: Pixels | null = null;
  private seed: Position = [0, 0];
  private seedX = 0;
  private tolerance = FIRST_TOLERANCE;
  private isErasing = false;
  private isExtending = false;
  private readonly redraw = oncePerFrame(() => this.show());

  constructor(
    private readonly map: OlMap,
    private readonly painting: Painting,
    color: string,
    private readonly isPanning: () => boolean,
    private readonly showNotice: (text: string) => void,
  ) {
    super();
    this.preview = new VectorLayer({ source: this.source, style: sketchStyle(color), className: "canvas-wand" });
    map.addLayer(this.preview);
  }

  leave(): void {
    this.map.removeLayer(this.preview);
  }

  cancel(): boolean {
    const isDrawing = this.picture !== null;
    this.picture = null;
    this.source.clear();
    return isDrawing;
  }

  override handleDownEvent(event: MapBrowserEvent): boolean {
    if (this.isPanning() || !primaryAction(event) || (event.activePointers?.length ?? 1) > 1) return false;
    const [x = 0, y = 0] = event.pixel;
    this.picture = imagePixels(this.map);
    this.seed = [Math.round(x), Math.round(y)];
    this.seedX = x;
    this.tolerance = FIRST_TOLERANCE;
    this.isErasing = event.originalEvent.altKey;
    this.isExtending = event.originalEvent.shiftKey;
    this.redraw();
    return true;
  }

  override handleDragEvent(event: MapBrowserEvent): void {
    const by = (event.pixel[0] ?? 0) - this.seedX;
    this.tolerance = Math.max(FIRST_TOLERANCE + by * TOLERANCE_PER_PX, 1);
    this.redraw();
  }

  override handleUpEvent(event: MapBrowserEvent): boolean {
    const region = this.region();
    this.cancel();
    if (!region) return false;
    const resolution = event.map.getView().getResolution() ?? 1;
    const target = this.painting.target(region, this.isErasing, this.isExtending);
    const problem = this.painting.apply(region, target, this.isErasing, resolution);
    if (problem) this.showNotice(problem);
    return false;
  }

  private show(): void {
    this.source.clear();
    const region = this.region();
    if (!region) return;
    const geometry = geometryFromL0(region);
    this.source.addFeature(new Feature(geometry instanceof MultiPolygon ? geometry : geometry.clone()));
  }

  private region(): RoiGeometry | null {
    if (!this.picture) return null;
    const { width } = this.picture;
    const mask = smoothed(floodFilled(this.picture, this.seed, this.tolerance), width, SMOOTHING_PX);
    const rings = ringsOf(mask, width).map((ring) =>
      ring.map((at): Position => l0FromMap(this.map.getCoordinateFromPixel(at))),
    );
    const area = areaOf(rings);
    return area && simplified(area, SIMPLIFY_SCREEN_PX * (this.map.getView().getResolution() ?? 1));
  }
}

/** Visible image at one pixel per CSS pixel; null if it cannot be read. */
function imagePixels(map: OlMap): Pixels | null {
  const [width = 0, height = 0] = (map.getSize() ?? [0, 0]).map(Math.round);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context || !width || !height) return null;
  for (const layer of viewportOf(map).querySelectorAll<HTMLElement>(IMAGE_LAYERS)) {
    const drawn = layer instanceof HTMLCanvasElement ? layer : layer.querySelector("canvas");
    if (!drawn?.width) continue;
    const matrix = new DOMMatrix(getComputedStyle(drawn).transform);
    context.setTransform(matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f);
    context.drawImage(drawn, 0, 0);
  }
  return { width, height, data: context.getImageData(0, 0, width, height).data };
}
