/** Panes whose views are synchronised; the pointer of one is shown in the others. */

import { element } from "../../dom/elements";
import { Emitter } from "../lib/events";
import { viewportOf } from "../map/viewport";
import type { Pane } from "./pane";
import { resolutionsAtOneScale, synchronizedPose } from "./view_sync";
import type { Pose } from "./view_sync";

const MOVES = ["change:center", "change:resolution", "change:rotation"] as const;

export class SyncedPanes extends Emitter<{ synced: boolean }> {
  private startPoses: Pose[] = [];
  private isFollowing = false;
  private crosses: HTMLElement[];
  private synced = false;

  constructor(private readonly panes: Pane[]) {
    super();
    this.crosses = panes.map(({ mapView }) => {
      const cross = element("div", { class: "pane-cross", "aria-hidden": "true", hidden: true });
      viewportOf(mapView.map).append(cross);
      return cross;
    });
    for (const [at, { mapView }] of panes.entries()) {
      for (const name of MOVES) mapView.view.on(name, () => this.followLeader(at));
      mapView.map.on("pointermove", ({ pixel }) => this.showPointer(at, pixel));
      mapView.target.addEventListener("pointerleave", () => this.showPointer(at, null));
    }
  }

  get isSynced(): boolean {
    return this.synced;
  }

  /** Synchronise the views from their present poses, or let each move independently. */
  setSynced(isSynced: boolean): void {
    this.synced = isSynced;
    this.startPoses = this.panes.map(({ pose }) => pose);
    for (const cross of this.crosses) cross.hidden = true;
    this.emit("synced", isSynced);
  }

  /** Bring all panes to one magnification; false if fewer than two have a known pixel size. */
  matchScale(): boolean {
    const scaled = this.panes.map(({ canvas, pose }) => ({ mpp: canvas.mpp_x, resolution: pose.resolution }));
    if (scaled.filter(({ mpp }) => mpp).length < 2) return false;
    this.isFollowing = true;
    const resolutions = resolutionsAtOneScale(scaled);
    for (const [at, pane] of this.panes.entries()) {
      pane.pose = { ...pane.pose, resolution: resolutions[at] ?? pane.pose.resolution };
    }
    this.isFollowing = false;
    this.setSynced(this.synced);
    return true;
  }

  private followLeader(leader: number): void {
    const leaderStart = this.startPoses[leader];
    const now = this.panes[leader]?.pose;
    if (!this.synced || this.isFollowing || !leaderStart || !now) return;
    this.isFollowing = true;
    for (const [at, pane] of this.panes.entries()) {
      const start = this.startPoses[at];
      if (at !== leader && start) pane.pose = synchronizedPose(start, leaderStart, now);
    }
    this.isFollowing = false;
  }

  /** Mark the pointer of one pane by crosses in the others, at the same distance from the centre. */
  private showPointer(from: number, pixel: number[] | null): void {
    const [width = 0, height = 0] = this.panes[from]?.mapView.map.getSize() ?? [];
    const [x = 0, y = 0] = pixel ?? [];
    for (const [at, cross] of this.crosses.entries()) {
      cross.hidden = !this.synced || !pixel || at === from;
      cross.style.left = `calc(50% + ${x - width / 2}px)`;
      cross.style.top = `calc(50% + ${y - height / 2}px)`;
    }
  }
}
