/** Draws a line of few points: by a click for each, or by press, drag and release. It snaps to nothing. */

import Feature from "ol/Feature";
import LineString from "ol/geom/LineString";
import PointerInteraction from "ol/interaction/Pointer";
import VectorLayer from "ol/layer/Vector";
import type OlMap from "ol/Map";
import type MapBrowserEvent from "ol/MapBrowserEvent";
import VectorSource from "ol/source/Vector";
import type { StyleLike } from "ol/style/Style";

import { isPrimary } from "../drawing/draw_interaction";

/** A pointer that moved less between press and release has clicked. */
const CLICK_SCREEN_PX = 6;

export interface LineDrawingOptions {
  pointCount: number;
  /** Keep the whole way of the first drag, not only its ends. */
  isFreehand?: boolean;
  style: StyleLike;
  isPanning: () => boolean;
  /** Called with the number of points placed. */
  onProgress: (placedCount: number) => void;
  onDrawn: (line: LineString) => void;
}

export class LineDrawing extends PointerInteraction {
  private placed: number[][] = [];
  /** Places of the drag under way, its first one included. */
  private way: number[][] = [];
  private pressedAt: number[] | null = null;
  private isFirstPress = false;
  private readonly line = new LineString([]);
  private readonly overlay: VectorLayer;

  constructor(private readonly options: LineDrawingOptions) {
    super();
    this.overlay = new VectorLayer({
      source: new VectorSource({ features: [new Feature(this.line)] }),
      style: options.style,
      updateWhileAnimating: true,
      updateWhileInteracting: true,
    });
  }

  override setMap(map: OlMap | null): void {
    this.overlay.setMap(map);
    super.setMap(map);
  }

  /** Drop the line; returns whether one was begun. */
  cancel(): boolean {
    const isBegun = this.placed.length > 0;
    this.pressedAt = null;
    this.place([]);
    return isBegun;
  }

  /** Cancel the press when another finger touches; points placed before stay. */
  interrupt(): void {
    if (!this.pressedAt) return;
    this.pressedAt = null;
    this.place(this.isFirstPress ? [] : this.placed);
  }

  override handleDownEvent(event: MapBrowserEvent): boolean {
    if (this.options.isPanning() || !isPrimary(event)) return false;
    this.pressedAt = event.pixel;
    this.isFirstPress = this.placed.length === 0;
    this.way = [event.coordinate];
    if (this.isFirstPress) this.place([event.coordinate]);
    this.show(event.coordinate);
    return true;
  }

  override handleDragEvent(event: MapBrowserEvent): void {
    if (!this.pressedAt) return;
    this.way.push(event.coordinate);
    this.show(event.coordinate);
  }

  override handleMoveEvent(event: MapBrowserEvent): void {
    if (this.placed.length) this.show(event.coordinate);
  }

  override handleUpEvent(event: MapBrowserEvent): boolean {
    if (!this.pressedAt) return false;
    event.preventDefault(); // no click, which would select
    const isDrag = this.hasMoved(this.pressedAt, event.pixel);
    this.pressedAt = null;
    if (this.isFirstPress && !isDrag) return false;
    const last = event.map.getPixelFromCoordinate(this.placed.at(-1) ?? event.coordinate);
    if (!this.hasMoved(last, event.pixel)) return false; // the second half of a double click
    const isWay = this.isFirstPress && this.options.isFreehand;
    this.place(isWay ? [...this.way, event.coordinate] : [...this.placed, event.coordinate]);
    if (this.placed.length >= this.options.pointCount) this.finish();
    return false;
  }

  private finish(): void {
    const line = new LineString(this.placed);
    this.place([]);
    this.options.onDrawn(line);
  }

  private place(points: number[][]): void {
    this.placed = points;
    this.line.setCoordinates(points.length > 1 ? points : []);
    this.options.onProgress(points.length);
  }

  private show(end: number[]): void {
    const isWay = this.pressedAt && this.isFirstPress && this.options.isFreehand;
    this.line.setCoordinates(isWay ? this.way : [...this.placed, end]);
  }

  private hasMoved([x0 = 0, y0 = 0]: number[], [x1 = 0, y1 = 0]: number[]): boolean {
    return Math.hypot(x1 - x0, y1 - y0) > CLICK_SCREEN_PX;
  }
}
