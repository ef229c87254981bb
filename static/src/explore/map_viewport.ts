/** Viewport of the map: centre and zoom. */
import type { PointTransform } from "./point_painter";
import { PLANE_SIDE } from "./map_points";
import type { MapPoint } from "./map_points";

const MARGIN = 0.04; // of the smaller side, around the whole map
const MAX_ZOOM = 200; // separates a hundred thousand points
const HALF = PLANE_SIDE / 2;

export class MapViewport {
  /** 1: the whole map. */
  zoom = 1;
  private middle: MapPoint = [HALF, HALF];
  private width = 0;
  private height = 0;

  /** Set the size of the window onto the plane, in pixels. */
  size(width: number, height: number): void {
    this.width = width;
    this.height = height;
  }

  /** Pixels per unit of the plane. */
  get scale(): number {
    return ((Math.min(this.width, this.height) * (1 - 2 * MARGIN)) / PLANE_SIDE) * this.zoom;
  }

  /** Transform from map to image pixels, for images with `ratio` pixels per CSS pixel. */
  transform(ratio: number): PointTransform {
    const scale = this.scale * ratio;
    return {
      scale,
      left: (this.width / 2) * ratio - this.middle[0] * scale,
      top: (this.height / 2) * ratio - this.middle[1] * scale,
    };
  }

  /** The place of the plane at a pixel. */
  place(x: number, y: number): MapPoint {
    return [(x - this.width / 2) / this.scale + this.middle[0], (y - this.height / 2) / this.scale + this.middle[1]];
  }

  /** Zoom by `factor`, keeping the point `about` in place. */
  zoomBy(factor: number, about: MapPoint = this.middle): void {
    const before = this.zoom;
    this.zoom = Math.max(1, Math.min(MAX_ZOOM, before * factor));
    const share = before / this.zoom;
    const between = (end: number, now: number): number => (this.zoom === 1 ? HALF : end + (now - end) * share);
    this.middle = [between(about[0], this.middle[0]), between(about[1], this.middle[1])];
  }

  /** Move the plane by this many pixels. */
  drag(x: number, y: number): void {
    this.middle = [this.middle[0] - x / this.scale, this.middle[1] - y / this.scale];
  }
}
