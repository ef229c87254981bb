/** The map: view, zoom, rotation, overview and the read-outs of the status bar. */

import OlMap from "ol/Map";
import View from "ol/View";
import OverviewMap from "ol/control/OverviewMap";
import { primaryAction, shiftKeyOnly } from "ol/events/condition";
import { getCenter } from "ol/extent";
import DragRotate from "ol/interaction/DragRotate";
import { defaults as defaultInteractions } from "ol/interaction/defaults";
import type BaseLayer from "ol/layer/Base";
import type Projection from "ol/proj/Projection";

import { thumbnailLayer } from "./canvas_layer";
import { l0FromMap, mapExtentOf } from "./pixel_plane";
import { scaleBar } from "./scale_bar";
import type { CanvasData } from "../lib/types";
import { lengthText, magnificationText } from "../lib/units";

const OVERVIEW_PX = 176;
const CLOSEST_RESOLUTION = 1 / 16;
const FIT_PADDING_PX = [24, 24, 24, 24];
export const ANIMATION_MS = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 180;

export class MapView {
  readonly map: OlMap;
  readonly view: View;

  constructor(
    private readonly canvas: CanvasData,
    private readonly projection: Projection,
    readonly target: HTMLElement,
    layers: BaseLayer[],
  ) {
    const extent = mapExtentOf(canvas);
    const wide = Math.max(canvas.width / target.clientWidth, canvas.height / target.clientHeight);
    this.view = new View({
      projection,
      center: getCenter(extent),
      extent: grown(extent),
      constrainOnlyCenter: true,
      showFullExtent: true,
      minResolution: CLOSEST_RESOLUTION,
      maxResolution: Math.max(wide * 4, 1),
      resolution: Math.max(wide, CLOSEST_RESOLUTION),
      constrainResolution: false,
    });
    const interactions = defaultInteractions({
      doubleClickZoom: false,
      shiftDragZoom: false,
      altShiftDragRotate: false,
    }).extend([new DragRotate({ condition: (event) => shiftKeyOnly(event) && primaryAction(event), duration: 0 })]);
    this.map = new OlMap({ target, layers, view: this.view, controls: [], interactions });
    this.fit(false);
    target.addEventListener("pointerdown", () => target.toggleAttribute("data-pointed", true));
    target.addEventListener("blur", () => target.toggleAttribute("data-pointed", false));
  }

  addOverview(host: HTMLElement): void {
    const thumbnail = thumbnailLayer(this.canvas, this.projection);
    if (!thumbnail) return;
    const resolution = Math.max(this.canvas.width, this.canvas.height) / OVERVIEW_PX;
    const width = Math.round(this.canvas.width / resolution);
    const height = Math.round(this.canvas.height / resolution);
    const control = new OverviewMap({
      target: host,
      collapsed: false,
      collapsible: false,
      layers: [thumbnail],
      view: new View({
        projection: this.projection,
        extent: mapExtentOf(this.canvas),
        center: getCenter(mapExtentOf(this.canvas)),
        resolutions: [resolution], // the whole image, whatever the map shows
        showFullExtent: true,
        enableRotation: false,
      }),
    });
    host.style.setProperty("--overview-width", `${width}px`);
    host.style.setProperty("--overview-height", `${height}px`);
    this.map.addControl(control);
    control.getOverviewMap().updateSize();
  }

  /** Scale bar, magnification, cursor position and rotation, wherever the page has room for them. */
  addReadouts(root: HTMLElement): void {
    const { map, view, canvas } = this;
    const at = (name: string): HTMLElement | null => root.querySelector(`[data-readout=${name}]`);
    const scaleHost = at("scale");
    if (scaleHost) scaleBar(map, scaleHost, canvas.mpp_x);
    const zoom = at("zoom");
    const cursor = at("cursor");
    const rotation = at("rotation");
    const update = (): void => {
      if (zoom) zoom.textContent = magnificationText(view.getResolution() ?? 1, canvas.mpp_x);
      const degrees = Math.round((view.getRotation() * 180) / Math.PI) % 360;
      if (rotation) rotation.textContent = degrees ? `${degrees}°` : "";
    };
    view.on(["change:resolution", "change:rotation"] as never, update);
    map.on("pointermove", (event) => {
      if (cursor) cursor.textContent = cursorText(l0FromMap(event.coordinate), canvas);
    });
    this.target.addEventListener("pointerleave", () => {
      if (cursor) cursor.textContent = "";
    });
    update();
  }

  zoomBy(factor: number): void {
    const resolution = (this.view.getResolution() ?? 1) / factor;
    this.view.animate({ resolution, duration: ANIMATION_MS });
  }

  fit(animated = true): void {
    const duration = animated ? ANIMATION_MS : 0;
    this.view.fit(mapExtentOf(this.canvas), { padding: FIT_PADDING_PX, duration });
  }

  /** One pixel of level 0 per pixel of the screen. */
  fullResolution(): void {
    this.view.animate({ resolution: 1, duration: ANIMATION_MS });
  }

  resetRotation(): void {
    this.view.animate({ rotation: 0, duration: ANIMATION_MS });
  }

  zoomTo(extent: number[]): void {
    this.view.fit(extent, { padding: [80, 80, 80, 80], duration: ANIMATION_MS, minResolution: 0.25 });
  }
}

/** Half a canvas of room around, so that a border region can be brought to the centre. */
function grown([left = 0, low = 0, right = 0, high = 0]: number[]): number[] {
  const [width, height] = [(right - left) * 0.1, (high - low) * 0.1];
  return [left - width, low - height, right + width, high + height];
}

function cursorText([x, y]: [number, number], canvas: CanvasData): string {
  if (x < 0 || y < 0 || x > canvas.width || y > canvas.height) return "";
  const pixels = `${Math.floor(x).toLocaleString("en")}, ${Math.floor(y).toLocaleString("en")} px`;
  if (!canvas.mpp_x || !canvas.mpp_y) return pixels;
  return `${pixels}  (${lengthText(x * canvas.mpp_x)}, ${lengthText(y * canvas.mpp_y)})`;
}
