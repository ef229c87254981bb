/**
 * The page's address contains the view: `x`, `y` (centre, level-0 pixels), `z` (level-0 pixels per screen pixel), `rot`
 * (degrees), `roi`, `t` (PTS of the frame).
 */

import { l0FromMap, mapFromL0 } from "./pixel_plane";
import type { MapView } from "./map_view";

/** Safari refuses more than 100 changes of the address in 30 s. */
const THROTTLE_MS = 300;
/** Smaller rotations are left out of the URL. */
const SMALLEST_ROTATION_DEG = 0.01;

export interface LinkTarget {
  x: number | null;
  y: number | null;
  z: number | null;
  rot: number;
  roi: string | null;
  t: number | null;
}

/** The number that a parameter is; null if it is missing, empty or no number. */
export function numberOf(text: string | null): number | null {
  const value = text?.trim() ? Number(text) : NaN;
  return Number.isFinite(value) ? value : null;
}

export function readLink(search: string): LinkTarget {
  const params = new URLSearchParams(search);
  const z = numberOf(params.get("z"));
  return {
    x: numberOf(params.get("x")),
    y: numberOf(params.get("y")),
    z: z !== null && z > 0 ? z : null,
    rot: numberOf(params.get("rot")) ?? 0,
    roi: params.get("roi"),
    t: numberOf(params.get("t")),
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

/** True if the link says which part of the image to show. */
export function applyView(mapView: MapView, link: LinkTarget): boolean {
  if (link.x === null || link.y === null) return false;
  const { view } = mapView;
  mapView.onPlaced();
  if (link.z !== null) view.setResolution(link.z);
  view.setRotation((link.rot * Math.PI) / 180);
  view.setCenter(mapFromL0([link.x, link.y]));
  return true;
}

/**
 * Returns a function that updates the page's address to `url()`, throttled. When `leaving` is aborted, the address is
 * written once more; the address of another image is never changed.
 */
export function addressKeeper(url: () => string, leaving?: AbortSignal): () => void {
  const path = location.pathname;
  let timer: ReturnType<typeof setTimeout> | null = null;
  const write = (): void => {
    if (timer) clearTimeout(timer);
    timer = null;
    if (location.pathname === path) history.replaceState(history.state, "", url());
  };
  leaving?.addEventListener("abort", () => timer && write());
  return () => {
    if (!leaving?.aborted) timer ??= setTimeout(write, THROTTLE_MS);
  };
}

export class DeepLink {
  readonly update: () => void;

  constructor(
    private readonly mapView: MapView,
    private readonly roi: () => string | null,
    private readonly pts: () => number | null,
    leaving: AbortSignal,
  ) {
    this.update = addressKeeper(() => this.url(), leaving);
    mapView.map.on("moveend", () => this.update());
  }

  /** The current view. */
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
