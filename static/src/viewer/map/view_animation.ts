/**
 * Animated moves of a view. A move that begins during another one completes that one first, so that quick zooms and
 * rotations add up exactly.
 */

import { easeOut } from "ol/easing";
import type View from "ol/View";
import type { FitOptions } from "ol/View";

type Move = (duration: number) => void;

/** State of a view. */
export interface ViewState {
  center: number[];
  resolution: number;
  rotation: number;
}

export class ViewAnimation {
  private inProgress: Move | null = null;
  /** The zoom of the last wheel event and its target. */
  private turn: { move: Move | null; resolution: number } = { move: null, resolution: 1 };

  constructor(
    private readonly view: View,
    private readonly duration_ms: number,
  ) {}

  zoomBy(factor: number): void {
    this.finish();
    this.zoomTo((this.view.getResolution() ?? 1) / factor);
  }

  zoomTo(resolution: number): void {
    this.begin((duration, callback) => this.view.animate({ resolution, duration }, callback));
  }

  /** Zoom around a point of the map. A running zoom is extended without a stop or a jump. */
  zoomAround(anchor: number[], factor: number): void {
    const isTurning = this.inProgress !== null && this.inProgress === this.turn.move && this.view.getAnimating();
    const from = isTurning ? this.turn.resolution : (this.view.getResolution() ?? 1);
    if (isTurning) {
      this.inProgress = null;
      this.view.cancelAnimations();
    }
    const resolution = this.view.getConstrainedResolution(from / factor) ?? from / factor;
    this.begin((duration, callback) => this.view.animate({ resolution, anchor, duration, easing: easeOut }, callback));
    this.turn = { move: this.inProgress, resolution };
  }

  /** Turn to the right, in radians. */
  rotateBy(angle: number): void {
    this.finish();
    this.rotateTo(this.view.getRotation() + angle);
  }

  rotateTo(rotation: number): void {
    this.begin((duration, callback) => this.view.animate({ rotation, duration }, callback));
  }

  fit(extent: number[], options: FitOptions): void {
    this.begin((duration, callback) => this.view.fit(extent, { ...options, duration, callback }));
  }

  goTo(place: ViewState): void {
    this.begin((duration, callback) => this.view.animate({ ...place, duration }, callback));
  }

  /** Jump to the end of the running animation; one interrupted by the pointer stays where it is. */
  finish(): void {
    const move = this.inProgress;
    this.inProgress = null;
    if (!move || !this.view.getAnimating()) return;
    this.view.cancelAnimations();
    move(0);
  }

  private begin(run: (duration: number, callback: () => void) => void): void {
    this.finish();
    const move: Move = (duration) =>
      run(duration, () => {
        if (this.inProgress === move) this.inProgress = null;
      });
    this.inProgress = move;
    move(this.duration_ms);
  }
}
