/** The panes that move together, and the pointer of one shown in the others. */

import { element } from "../../dom/elements";
import { Emitter } from "../lib/events";
import { viewportOf } from "../map/viewport";
import type { Pane } from "./pane";
import { atOneScale, followed } from "./tie";
import type { Pose } from "./tie";

const MOVES = ["change:center", "change:resolution", "change:rotation"] as const;

export class TiedPanes extends Emitter<{ tied: boolean }> {
  private stood: Pose[] = [];
  private isFollowing = false;
  private crosses: HTMLElement[];
  private tied = false;

  constructor(private readonly panes: Pane[]) {
    super();
    this.crosses = panes.map(({ mapView }) => {
      const cross = element("div", { class: "pane-cross", "aria-hidden": "true", hidden: true });
      viewportOf(mapView.map).append(cross);
      return cross;
    });
    for (const [at, { mapView }] of panes.entries()) {
      for (const name of MOVES) mapView.view.on(name, () => this.lead(at));
      mapView.map.on("pointermove", ({ pixel }) => this.point(at, pixel));
      mapView.target.addEventListener("pointerleave", () => this.point(at, null));
    }
  }

  get isTied(): boolean {
    return this.tied;
  }

  /** Move together from here on, or each by itself. */
  tie(isTied: boolean): void {
    this.tied = isTied;
    this.stood = this.panes.map(({ pose }) => pose);
    for (const cross of this.crosses) cross.hidden = true;
    this.emit("tied", isTied);
  }

  /** All at one magnification; false where fewer than two know their pixel size. */
  scaleAlike(): boolean {
    const scaled = this.panes.map(({ canvas, pose }) => ({ mpp: canvas.mpp_x, resolution: pose.resolution }));
    if (scaled.filter(({ mpp }) => mpp).length < 2) return false;
    this.isFollowing = true;
    const resolutions = atOneScale(scaled);
    for (const [at, pane] of this.panes.entries()) {
      pane.pose = { ...pane.pose, resolution: resolutions[at] ?? pane.pose.resolution };
    }
    this.isFollowing = false;
    this.tie(this.tied);
    return true;
  }

  private lead(leader: number): void {
    const lead = this.stood[leader];
    const now = this.panes[leader]?.pose;
    if (!this.tied || this.isFollowing || !lead || !now) return;
    this.isFollowing = true;
    for (const [at, pane] of this.panes.entries()) {
      const own = this.stood[at];
      if (at !== leader && own) pane.pose = followed(own, lead, now);
    }
    this.isFollowing = false;
  }

  /** Tied panes show the same place at the same distance from their middles. */
  private point(from: number, pixel: number[] | null): void {
    const [width = 0, height = 0] = this.panes[from]?.mapView.map.getSize() ?? [];
    const [x = 0, y = 0] = pixel ?? [];
    for (const [at, cross] of this.crosses.entries()) {
      cross.hidden = !this.tied || !pixel || at === from;
      cross.style.left = `calc(50% + ${x - width / 2}px)`;
      cross.style.top = `calc(50% + ${y - height / 2}px)`;
    }
  }
}
