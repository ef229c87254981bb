/** Scatter plot on a canvas: pan, zoom, hover, and selection by a lasso. */
import { required } from "../dom/elements";
import { PointImage, HIDDEN, rgbaOf } from "./point_painter";
import type { MapPoints, MapPoint } from "./map_points";
import { PointGrid } from "./map_points";
import { MapViewport } from "./map_viewport";

const WHEEL = 0.0015; // of a zoom, per pixel of the wheel
const HIT_RADIUS_PX = 8; // of the pointer to a point: half a fingertip
const MAX_POINT_PX = 14; // of a point, however close the zoom

export interface ScatterPlotEvents {
  /** The pointer is over a point, or over none (-1). */
  hover(at: number, x: number, y: number): void;
  open(at: number): void;
  select(found: number[]): void;
}

export class ScatterPlot {
  private rgba: Uint32Array;
  /** 1 for each point that is selected; null if none is. */
  private chosen: Uint8Array | null = null;
  private picture: PointImage | null = null;
  private isStale = true; // the picture: where the points lie, how large, or in which colours
  private hovered = -1;
  private outline: MapPoint[] | null = null;
  private moved = false;
  private isQueued = false;
  private readonly view = new MapViewport();
  private readonly grid: PointGrid;
  private readonly canvas: HTMLCanvasElement;
  isSelecting = false;

  constructor(
    private readonly root: HTMLElement,
    private readonly points: MapPoints,
    private readonly events: ScatterPlotEvents,
  ) {
    this.grid = new PointGrid(points);
    this.rgba = new Uint32Array(points.rois.length);
    this.canvas = required<HTMLCanvasElement>(root, "canvas");
    this.canvas.addEventListener("pointerdown", (event) => this.handlePointerDown(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", (event) => this.release(event));
    this.canvas.addEventListener("pointercancel", () => this.drop());
    this.canvas.addEventListener("pointerleave", () => this.hover(-1, 0, 0));
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoomBy(Math.exp(-event.deltaY * WHEEL), this.placeOf(event));
      },
      { passive: false },
    );
    new ResizeObserver(() => this.draw()).observe(root);
  }

  /** The colour of each point, `#rrggbb`; null hides it. */
  color(colors: readonly (string | null)[]): void {
    const known = new Map([...new Set(colors)].map((color) => [color, color === null ? HIDDEN : rgbaOf(color)]));
    this.rgba = Uint32Array.from(colors, (color) => known.get(color) ?? HIDDEN);
    this.draw();
  }

  choose(chosen: readonly number[]): void {
    const marks = new Uint8Array(this.rgba.length);
    for (const at of chosen) marks[at] = 1;
    this.chosen = chosen.length ? marks : null;
    this.draw();
  }

  /** Highlight a point, such as the one whose row in the list has the focus. */
  point(at: number): void {
    if (this.hovered === at) return;
    this.hovered = at;
    this.queue();
  }

  zoomBy(factor: number, about?: MapPoint): void {
    this.view.zoomBy(factor, about);
    this.draw();
  }

  showAll(): void {
    this.zoomBy(0);
  }

  private placeOf(event: MouseEvent): MapPoint {
    const box = this.canvas.getBoundingClientRect();
    return this.view.place(event.clientX - box.left, event.clientY - box.top);
  }

  private handlePointerDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.moved = false;
    this.outline = this.isSelecting || event.shiftKey ? [this.placeOf(event)] : null;
  }

  private move(event: PointerEvent): void {
    if (!this.canvas.hasPointerCapture(event.pointerId)) {
      const nearest = this.grid.nearest(this.placeOf(event), HIT_RADIUS_PX / this.view.scale, (at) => this.isShown(at));
      const box = this.root.getBoundingClientRect();
      return this.hover(nearest, event.clientX - box.left, event.clientY - box.top);
    }
    this.moved ||= Math.abs(event.movementX) + Math.abs(event.movementY) > 0;
    if (this.outline) {
      this.outline.push(this.placeOf(event));
      return this.queue();
    }
    this.view.drag(event.movementX, event.movementY);
    this.draw();
  }

  private release(event: PointerEvent): void {
    if (!this.canvas.hasPointerCapture(event.pointerId)) return;
    this.canvas.releasePointerCapture(event.pointerId);
    const outline = this.outline;
    this.drop();
    if (outline && this.moved) this.events.select(this.grid.inside(outline).filter((at) => this.isShown(at)));
    else if (!this.moved && this.hovered >= 0) this.events.open(this.hovered);
  }

  private drop(): void {
    this.outline = null;
    this.queue();
  }

  private hover(at: number, x: number, y: number): void {
    this.canvas.style.cursor = this.isSelecting ? "crosshair" : at >= 0 ? "pointer" : "grab";
    this.point(at);
    this.events.hover(at, x, y);
  }

  private isShown(at: number): boolean {
    return this.rgba[at] !== HIDDEN;
  }

  /** Schedule a full redraw, at most one per frame. */
  private draw(): void {
    this.isStale = true;
    this.queue();
  }

  /** Schedule a redraw of the overlay only, unless the points are stale. */
  private queue(): void {
    if (this.isQueued) return;
    this.isQueued = true;
    requestAnimationFrame(() => {
      this.isQueued = false;
      this.paint();
    });
  }

  private paint(): void {
    const { clientWidth, clientHeight } = this.root;
    const ratio = window.devicePixelRatio;
    const [width, height] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)];
    const context = this.canvas.getContext("2d");
    if (!context || width === 0 || height === 0) return;
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.view.size(clientWidth, clientHeight);
    const picture = this.currentPicture(width, height, ratio);
    context.putImageData(new ImageData(picture.bytes, picture.width), -picture.margin, -picture.margin);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.strokeStyle = getComputedStyle(this.root).color;
    const { scale, left, top } = this.view.transform(1);
    if (this.hovered >= 0) {
      context.lineWidth = 2;
      context.beginPath();
      const x = (this.points.x[this.hovered] ?? 0) * scale + left;
      const y = (this.points.y[this.hovered] ?? 0) * scale + top;
      context.arc(x, y, this.size() / 2 + 4, 0, 2 * Math.PI);
      context.stroke();
    }
    if (this.outline) {
      context.setLineDash([4, 3]);
      context.beginPath();
      for (const [x, y] of this.outline) context.lineTo(x * scale + left, y * scale + top);
      context.closePath();
      context.stroke();
      context.setLineDash([]);
    }
  }

  /** Picture of the points; the previous picture if nothing has changed. */
  private currentPicture(width: number, height: number, ratio: number): PointImage {
    const margin = Math.ceil(MAX_POINT_PX * ratio);
    if (!this.picture?.fits(width, height, margin)) {
      this.picture = new PointImage(width, height, margin);
      this.isStale = true;
    }
    if (this.isStale) {
      this.picture.paint(this.points, this.rgba, this.chosen, this.view.transform(ratio), this.size() * ratio);
    }
    this.isStale = false;
    return this.picture;
  }

  /** Diameter of a point in pixels: larger for few points and at high zoom. */
  private size(): number {
    const showAll = Math.max(2, Math.min(9, 220 / Math.sqrt(this.points.rois.length)));
    return Math.min(MAX_POINT_PX, showAll * this.view.zoom ** 0.35);
  }
}
