/**
 * Animated moves of a view. A move that begins while another one is under way takes that one to its end
 * first: so zooms and turns that follow each other quickly add up exactly.
 */

import { easeOut } from "ol/easing";
import type View from "ol/View";
import type { FitOptions } from "ol/View";

type Move = (duration: number) => void;

/** What a view shows. */
export interface ViewPlace {
  center: number[];
  resolution: number;
  rotation: number;
}

export class ViewMoves {
  private underway: Move | null = null;
  /** The last turn of the wheel, and where it leads. */
  private turn: { move: Move | null; resolution: number } = { move: null, resolution: 1 };

  constructor(
    private readonly view: View,
    private readonly duration_ms: number,
  ) {}

  zoomBy(factor: number): void {
    this.arrive();
    this.zoomTo((this.view.getResolution() ?? 1) / factor);
  }

  zoomTo(resolution: number): void {
    this.begin((duration, callback) => this.view.animate({ resolution, duration }, callback));
  }

  /** Zoom around a point of the map. One that is under way is carried further, without a halt or a jump. */
  zoomAround(anchor: number[], factor: number): void {
    const isTurning = this.underway !== null && this.underway === this.turn.move && this.view.getAnimating();
    const from = isTurning ? this.turn.resolution : (this.view.getResolution() ?? 1);
    if (isTurning) {
      this.underway = null;
      this.view.cancelAnimations();
    }
    const resolution = this.view.getConstrainedResolution(from / factor) ?? from / factor;
    this.begin((duration, callback) => this.view.animate({ resolution, anchor, duration, easing: easeOut }, callback));
    this.turn = { move: this.underway, resolution };
  }

  /** Turn to the right, in radians. */
  turnBy(angle: number): void {
    this.arrive();
    this.turnTo(this.view.getRotation() + angle);
  }

  turnTo(rotation: number): void {
    this.begin((duration, callback) => this.view.animate({ rotation, duration }, callback));
  }

  fit(extent: number[], options: FitOptions): void {
    this.begin((duration, callback) => this.view.fit(extent, { ...options, duration, callback }));
  }

  goTo(place: ViewPlace): void {
    this.begin((duration, callback) => this.view.animate({ ...place, duration }, callback));
  }

  /** What is under way ends now, where it leads; a move that the pointer broke off stays where it is. */
  arrive(): void {
    const move = this.underway;
    this.underway = null;
    if (!move || !this.view.getAnimating()) return;
    this.view.cancelAnimations();
    move(0);
  }

  private begin(run: (duration: number, callback: () => void) => void): void {
    this.arrive();
    const move: Move = (duration) =>
      run(duration, () => {
        if (this.underway === move) this.underway = null;
      });
    this.underway = move;
    move(this.duration_ms);
  }
}
