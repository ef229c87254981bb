/** The points on a canvas: moved and zoomed by hand, one outlined, some selected by an outline. */
import { required } from "../dom/elements";
import type { MapPoints, Place } from "./points";
import { PLANE, PointGrid } from "./points";

const MARGIN = 0.04; // of the canvas' smaller side, around the whole map
const ZOOM_MOST = 200; // at which a hundred thousand points lie apart
const WHEEL = 0.0015; // of a zoom, per pixel of the wheel
const REACH_PX = 8; // of the pointer to a point: half a fingertip

export interface PlaneEvents {
  /** The pointer is over a point, or over none (-1). */
  hover(at: number, x: number, y: number): void;
  open(at: number): void;
  select(found: number[]): void;
}

export class Plane {
  /** Colour of each point; null hides it. */
  private colors: (string | null)[] = [];
  private chosen = new Set<number>();
  private hovered = -1;
  private zoom = 1;
  private middle: [number, number] = [PLANE / 2, PLANE / 2];
  private outline: Place[] | null = null;
  private moved = false;
  private isQueued = false;
  private readonly grid: PointGrid;
  private readonly canvas: HTMLCanvasElement;
  isSelecting = false;

  constructor(
    private readonly root: HTMLElement,
    private readonly points: MapPoints,
    private readonly events: PlaneEvents,
  ) {
    this.grid = new PointGrid(points);
    this.canvas = required<HTMLCanvasElement>(root, "canvas");
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
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

  color(colors: (string | null)[]): void {
    this.colors = colors;
    this.draw();
  }

  choose(chosen: Iterable<number>): void {
    this.chosen = new Set(chosen);
    this.draw();
  }

  /** Point out one, as where its row of the list has the focus. */
  point(at: number): void {
    if (this.hovered === at) return;
    this.hovered = at;
    this.draw();
  }

  zoomBy(factor: number, about: Place = this.middle): void {
    const before = this.zoom;
    this.zoom = Math.max(1, Math.min(ZOOM_MOST, this.zoom * factor));
    const share = before / this.zoom;
    this.middle = [about[0] + (this.middle[0] - about[0]) * share, about[1] + (this.middle[1] - about[1]) * share];
    if (this.zoom === 1) this.middle = [PLANE / 2, PLANE / 2];
    this.draw();
  }

  whole(): void {
    this.zoomBy(0);
  }

  private get scale(): number {
    const side = Math.min(this.root.clientWidth, this.root.clientHeight);
    return ((side * (1 - 2 * MARGIN)) / PLANE) * this.zoom;
  }

  private placeOf(event: MouseEvent): [number, number] {
    const box = this.canvas.getBoundingClientRect();
    return [
      (event.clientX - box.left - box.width / 2) / this.scale + this.middle[0],
      (event.clientY - box.top - box.height / 2) / this.scale + this.middle[1],
    ];
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.moved = false;
    this.outline = this.isSelecting || event.shiftKey ? [this.placeOf(event)] : null;
  }

  private move(event: PointerEvent): void {
    if (!this.canvas.hasPointerCapture(event.pointerId)) {
      const found = this.grid.nearest(this.placeOf(event), REACH_PX / this.scale, (at) => this.colors[at] !== null);
      const box = this.root.getBoundingClientRect();
      return this.hover(found, event.clientX - box.left, event.clientY - box.top);
    }
    this.moved ||= Math.abs(event.movementX) + Math.abs(event.movementY) > 0;
    if (this.outline) this.outline.push(this.placeOf(event));
    else {
      this.middle[0] -= event.movementX / this.scale;
      this.middle[1] -= event.movementY / this.scale;
    }
    this.draw();
  }

  private release(event: PointerEvent): void {
    if (!this.canvas.hasPointerCapture(event.pointerId)) return;
    this.canvas.releasePointerCapture(event.pointerId);
    const outline = this.outline;
    this.drop();
    if (outline && this.moved) {
      this.events.select(this.grid.inside(outline).filter((at) => this.colors[at] !== null));
    } else if (!this.moved && this.hovered >= 0) this.events.open(this.hovered);
  }

  private drop(): void {
    this.outline = null;
    this.draw();
  }

  private hover(at: number, x: number, y: number): void {
    this.canvas.style.cursor = this.isSelecting ? "crosshair" : at >= 0 ? "pointer" : "grab";
    this.point(at);
    this.events.hover(at, x, y);
  }

  /** Once a frame at most, however much changed. */
  private draw(): void {
    if (this.isQueued) return;
    this.isQueued = true;
    requestAnimationFrame(() => {
      this.isQueued = false;
      this.paint();
    });
  }

  private paint(): void {
    const { clientWidth: width, clientHeight: height } = this.root;
    const ratio = window.devicePixelRatio;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const { scale, middle } = this;
    const left = width / 2 - middle[0] * scale;
    const top = height / 2 - middle[1] * scale;
    const size = this.size();
    const isDimmed = this.chosen.size > 0;
    for (const [color, own] of this.byColor()) {
      context.fillStyle = color;
      for (const isChosen of isDimmed ? [false, true] : [true]) {
        context.globalAlpha = isChosen ? 0.9 : 0.15;
        context.beginPath();
        for (const at of own) {
          if (isDimmed && this.chosen.has(at) !== isChosen) continue;
          const x = (this.points.x[at] ?? 0) * scale + left;
          const y = (this.points.y[at] ?? 0) * scale + top;
          if (x < -size || y < -size || x > width + size || y > height + size) continue;
          if (size > 4) {
            context.moveTo(x + size / 2, y);
            context.arc(x, y, size / 2, 0, 2 * Math.PI);
          } else context.rect(x - size / 2, y - size / 2, size, size);
        }
        context.fill();
      }
    }
    context.globalAlpha = 1;
    const ink = getComputedStyle(this.root).color;
    if (this.hovered >= 0) {
      context.strokeStyle = ink;
      context.lineWidth = 2;
      context.beginPath();
      const x = (this.points.x[this.hovered] ?? 0) * scale + left;
      const y = (this.points.y[this.hovered] ?? 0) * scale + top;
      context.arc(x, y, size / 2 + 4, 0, 2 * Math.PI);
      context.stroke();
    }
    if (this.outline) {
      context.strokeStyle = ink;
      context.setLineDash([4, 3]);
      context.beginPath();
      for (const [x, y] of this.outline) context.lineTo(x * scale + left, y * scale + top);
      context.closePath();
      context.stroke();
      context.setLineDash([]);
    }
  }

  /** Points of each colour: one path a colour is painted many times faster than one a point. */
  private byColor(): Map<string, number[]> {
    const found = new Map<string, number[]>();
    this.colors.forEach((color, at) => {
      if (color === null) return;
      const own = found.get(color);
      if (own) own.push(at);
      else found.set(color, [at]);
    });
    return found;
  }

  /** Of a point in pixels: a few are large, many are small; closer they grow. */
  private size(): number {
    const whole = Math.max(2, Math.min(9, 220 / Math.sqrt(this.points.rois.length)));
    return Math.min(14, whole * this.zoom ** 0.35);
  }
}
