/**
 * The page's address carries what is on screen: `x`, `y` (centre, level-0 pixels), `z` (level-0
 * pixels per screen pixel), `rot` (degrees), `roi`, `t` (PTS of the frame).
 */

import { l0FromMap, mapFromL0 } from "./pixel_plane";
import type { MapView } from "./map_view";

/** Safari refuses more than 100 changes of the address in 30 s. */
const THROTTLE_MS = 300;
/** Anything smaller is left over from turning back by hand. */
const SMALLEST_ROTATION_DEG = 0.01;

export interface LinkTarget {
  x: number | null;
  y: number | null;
  z: number | null;
  rot: number;
  roi: string | null;
  t: number | null;
}

function numberOf(params: URLSearchParams, name: string): number | null {
  const text = params.get(name);
  const value = text === null || text === "" ? NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}

export function readLink(search: string): LinkTarget {
  const params = new URLSearchParams(search);
  const z = numberOf(params, "z");
  return {
    x: numberOf(params, "x"),
    y: numberOf(params, "y"),
    z: z !== null && z > 0 ? z : null,
    rot: numberOf(params, "rot") ?? 0,
    roi: params.get("roi"),
    t: numberOf(params, "t"),
  };
}

/** The query of an address; what is null is left out, and so is a rotation nobody would see. */
export function writeLink({ x, y, z, rot, roi, t }: LinkTarget): string {
  const params = new URLSearchParams();
  if (x !== null) params.set("x", x.toFixed(2));
  if (y !== null) params.set("y", y.toFixed(2));
  if (z !== null) params.set("z", String(Number(z.toPrecision(8))));
  if (Math.abs(rot) > SMALLEST_ROTATION_DEG) params.set("rot", rot.toFixed(2));
  if (roi) params.set("roi", roi);
  if (t !== null) params.set("t", String(t));
  return params.toString();
}

/** True where the link says which part of the image to show. */
export function applyView(mapView: MapView, link: LinkTarget): boolean {
  if (link.x === null || link.y === null) return false;
  const { view } = mapView;
  mapView.placed();
  if (link.z !== null) view.setResolution(link.z);
  view.setRotation((link.rot * Math.PI) / 180);
  view.setCenter(mapFromL0([link.x, link.y]));
  return true;
}

export class DeepLink {
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly mapView: MapView,
    private readonly roi: () => string | null,
    private readonly pts: () => number | null,
  ) {
    mapView.map.on("moveend", () => this.update());
  }

  update(): void {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      history.replaceState(history.state, "", this.url());
    }, THROTTLE_MS);
  }

  /** What is on screen now. */
  target(): LinkTarget {
    const { view } = this.mapView;
    const [x, y] = l0FromMap(view.getCenter() ?? [0, 0]);
    const rot = (view.getRotation() * 180) / Math.PI;
    return { x, y, z: view.getResolution() ?? 1, rot, roi: this.roi(), t: this.pts() };
  }

  private url(): string {
    return `${location.pathname}?${writeLink(this.target())}`;
  }
}
