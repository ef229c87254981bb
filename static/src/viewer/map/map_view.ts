/** The map: view, zoom, rotation and overview. */

import OlMap from "ol/Map";
import View from "ol/View";
import OverviewMap from "ol/control/OverviewMap";
import { primaryAction, shiftKeyOnly } from "ol/events/condition";
import { rotate } from "ol/coordinate";
import { getCenter } from "ol/extent";
import DragPan from "ol/interaction/DragPan";
import DragRotate from "ol/interaction/DragRotate";
import KeyboardPan from "ol/interaction/KeyboardPan";
import { defaults as defaultInteractions } from "ol/interaction/defaults";
import type BaseLayer from "ol/layer/Base";
import type Projection from "ol/proj/Projection";

import { thumbnailLayer } from "./tile_layers";
import { mapExtentOf } from "./pixel_plane";
import type { CanvasData } from "../lib/types";
import { magnificationOf, resolutionAt } from "../lib/units";
import { nextPreset } from "./magnifications";
import { ViewAnimation } from "./view_animation";
import type { ViewState } from "./view_animation";
import { WheelZoom } from "./wheel_zoom";

/** The overview's longer side: large enough to aim at, small enough not to hide the image. */
const OVERVIEW_PX = 176;
/** A level-0 pixel covers 16 x 16 screen pixels: magnifying further shows nothing new. */
const CLOSEST_RESOLUTION = 1 / 16;
/** An image that follows another one goes this much nearer and further than by itself. */
const FREE_ZOOM_FACTOR = 16;
/** The edge of the image stays visible when it is fitted to the window. */
const FIT_PADDING_PX = [24, 24, 24, 24];
/** An ROI is shown with its surroundings. */
const ZOOM_PADDING_PX = [80, 80, 80, 80];
/** A tiny ROI is not magnified beyond four screen pixels per pixel. */
const ZOOM_CLOSEST_RESOLUTION = 0.25;
/** Long enough to follow the movement, short enough not to wait for it. */
const ANIMATION_MS = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 180;
/** Events by which a user moves the map. */
const USER_EVENTS = ["pointerdown", "wheel", "keydown"];

export class MapView {
  readonly map: OlMap;
  readonly view: View;
  private readonly moves: ViewAnimation;

  constructor(
    private readonly canvas: CanvasData,
    private readonly projection: Projection,
    readonly target: HTMLElement,
    layers: BaseLayer[],
    { isFree = false } = {},
  ) {
    const extent = mapExtentOf(canvas);
    const wide = Math.max(canvas.width / target.clientWidth, canvas.height / target.clientHeight);
    this.view = new View({
      projection,
      center: getCenter(extent),
      ...(isFree ? {} : { extent: padded(extent) }),
      constrainOnlyCenter: true,
      showFullExtent: true,
      minResolution: isFree ? CLOSEST_RESOLUTION / FREE_ZOOM_FACTOR : CLOSEST_RESOLUTION,
      maxResolution: Math.max(wide * 4, 1) * (isFree ? FREE_ZOOM_FACTOR : 1), // the whole image in a quarter of the window
      resolution: Math.max(wide, CLOSEST_RESOLUTION),
      constrainResolution: false,
    });
    const interactions = defaultInteractions({
      doubleClickZoom: false,
      shiftDragZoom: false,
      altShiftDragRotate: false,
      mouseWheelZoom: false,
      keyboard: false, // plus and minus are keys of the page: OpenLayers would zoom once more
    }).extend([
      new KeyboardPan(),
      new DragPan({ condition: ({ originalEvent }) => originalEvent instanceof PointerEvent && originalEvent.button === 1 }),
      new WheelZoom((anchor, factor) => this.moves.zoomAround(anchor, factor)),
      new DragRotate({ condition: (event) => shiftKeyOnly(event) && primaryAction(event), duration: 0 }),
    ]);
    this.moves = new ViewAnimation(this.view, ANIMATION_MS);
    this.map = new OlMap({ target, layers, view: this.view, controls: [], interactions });
    this.fit(false);
    this.keepCentre();
    this.fitUntilMoved();
    target.addEventListener("pointerdown", () => target.toggleAttribute("data-pointed", true));
    target.addEventListener("mousedown", (event) => event.button === 1 && event.preventDefault()); // prevents autoscroll
    target.addEventListener("blur", () => target.toggleAttribute("data-pointed", false));
  }

  /** Release the page's resources when the image is left. */
  close(): void {
    this.moves.finish();
    this.map.setTarget(undefined);
    this.map.dispose();
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
    this.followOverview(host, control.getOverviewMap());
  }

  /** Move the image while the pointer drags on the overview. */
  private followOverview(host: HTMLElement, overview: OlMap): void {
    const centre = (event: PointerEvent): void => {
      const to = overview.getEventCoordinate(event);
      if (to.every(Number.isFinite)) this.view.setCenter(to);
    };
    host.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      event.preventDefault();
      event.stopPropagation(); // the control's own drag moves the image on release
      this.onPlaced();
      host.setPointerCapture(event.pointerId);
      centre(event);
    }, true);
    host.addEventListener("pointermove", (event) => {
      if (host.hasPointerCapture(event.pointerId)) centre(event);
    });
  }

  /** Keep the image in place when a row or panel changes the size of the map, once the user has moved it. */
  private keepCentre(): void {
    let before = layoutOf(this.target);
    let isUsed = false;
    for (const type of USER_EVENTS) this.target.addEventListener(type, () => (isUsed = true), { once: true, passive: true });
    this.map.on("change:size", () => {
      const now = layoutOf(this.target);
      const by = [now.x - before.x, before.y - now.y].map((part) => part * (this.view.getResolution() ?? 1));
      const [x = 0, y = 0] = rotate(by, this.view.getRotation());
      if (isUsed && now.window === before.window && !this.view.getAnimating()) this.view.adjustCenter([x, y]);
      before = now;
    });
  }

  /** Keep the whole image in view while elements laid out later (timeline, panel) resize the map. */
  private fitUntilMoved(): void {
    const refit = (): void => this.fit(false);
    this.map.on("change:size", refit);
    const stop = (): void => this.map.un("change:size", refit);
    for (const type of USER_EVENTS) {
      this.target.addEventListener(type, stop, { once: true, passive: true });
    }
    this.onPlaced = stop;
  }

  /** The view was set on purpose: a change of the map's size no longer fits the whole image. */
  onPlaced: () => void = () => undefined;

  zoomBy(factor: number): void {
    this.onPlaced();
    this.moves.zoomBy(factor);
  }

  fit(animated = true): void {
    const options = { padding: FIT_PADDING_PX };
    if (animated) this.moves.fit(mapExtentOf(this.canvas), options);
    else this.view.fit(mapExtentOf(this.canvas), options);
  }

  /** Zoom to one level-0 pixel per screen pixel. */
  fullResolution(): void {
    this.onPlaced();
    this.moves.zoomTo(1);
  }

  /** Zoom to an objective's magnification; does nothing if the pixel size is unknown. */
  magnify(power: number): void {
    if (!this.canvas.mpp_x) return;
    this.onPlaced();
    this.moves.zoomTo(resolutionAt(power, this.canvas.mpp_x));
  }

  /** Zoom to the next higher or lower objective's magnification; false if the pixel size is unknown. */
  stepMagnification(by: 1 | -1): boolean {
    const mpp = this.canvas.mpp_x;
    if (!mpp) return false;
    this.moves.finish();
    const power = nextPreset(magnificationOf(this.view.getResolution() ?? 1, mpp), by);
    if (power) this.magnify(power);
    return true;
  }

  /** Turn to the right, in degrees. */
  rotateBy(degrees: number): void {
    this.moves.rotateBy((degrees * Math.PI) / 180);
  }

  resetRotation(): void {
    this.moves.rotateTo(0);
  }

  /** The view at the end of any running animation. */
  place(): ViewState {
    this.moves.finish();
    return { center: this.view.getCenter() ?? [0, 0], resolution: this.view.getResolution() ?? 1, rotation: this.view.getRotation() };
  }

  goTo(place: ViewState): void {
    this.onPlaced();
    this.moves.goTo(place);
  }

  zoomTo(extent: number[]): void {
    this.onPlaced();
    this.moves.fit(extent, { padding: ZOOM_PADDING_PX, minResolution: ZOOM_CLOSEST_RESOLUTION });
  }
}

/** The middle of an element on the page, and the size of the window. */
function layoutOf(target: HTMLElement): { x: number; y: number; window: string } {
  const { left, top, width, height } = target.getBoundingClientRect();
  return { x: left + width / 2, y: top + height / 2 + scrollY, window: `${innerWidth} ${innerHeight}` };
}

/** A tenth of the canvas as margin on each side, for the centre of the view. */
function padded([left = 0, low = 0, right = 0, high = 0]: number[]): number[] {
  const [width, height] = [(right - left) * 0.1, (high - low) * 0.1];
  return [left - width, low - height, right + width, high + height];
}
