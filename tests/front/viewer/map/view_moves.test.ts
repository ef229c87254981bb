import View from "ol/View";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { ViewMoves } from "@/viewer/map/view_moves";

const DURATION_MS = 180;
const HALF_WAY_MS = 60;
const QUARTER = Math.PI / 2;

let view: View;
let moves: ViewMoves;

/** Time passes, and the browser paints. */
function pass(ms: number): void {
  vi.advanceTimersByTime(ms);
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("requestAnimationFrame", (run: () => void) => setTimeout(run, 16));
  vi.stubGlobal("cancelAnimationFrame", (timer: ReturnType<typeof setTimeout>) => clearTimeout(timer));
  view = new View({ center: [0, 0], resolution: 4, maxResolution: 64, minResolution: 1 / 64, constrainResolution: false });
  moves = new ViewMoves(view, DURATION_MS);
});

afterEach(() => {
  vi.useRealTimers();
});

it("moves gradually and ends exactly there", () => {
  moves.zoomBy(2);
  pass(HALF_WAY_MS);
  expect(view.getResolution()).toBeLessThan(4);
  expect(view.getResolution()).toBeGreaterThan(2);
  pass(DURATION_MS);
  expect(view.getResolution()).toBe(2);
});

it("adds up zooms and turns that begin while another is under way", () => {
  moves.zoomBy(2);
  pass(HALF_WAY_MS);
  moves.zoomBy(2);
  pass(HALF_WAY_MS);
  moves.turnBy(QUARTER / 2);
  pass(HALF_WAY_MS);
  moves.turnBy(QUARTER / 2);
  pass(HALF_WAY_MS);
  moves.zoomBy(0.5);
  pass(2 * DURATION_MS);
  expect(view.getResolution()).toBe(2);
  expect(view.getRotation()).toBeCloseTo(QUARTER, 12);
});

it("zooms from where a fit leads", () => {
  moves.fit([0, 0, 100, 200], { size: [100, 100] });
  pass(HALF_WAY_MS);
  moves.zoomBy(2);
  pass(2 * DURATION_MS);
  expect(view.getResolution()).toBe(1);
  expect(view.getCenter()).toEqual([50, 100]);
});

it("zooms from where the pointer has put the view", () => {
  moves.zoomBy(2);
  pass(HALF_WAY_MS);
  view.cancelAnimations(); // as a drag does
  view.setResolution(10);
  moves.zoomBy(2);
  pass(2 * DURATION_MS);
  expect(view.getResolution()).toBe(5);
});

it("does not go back to a move that has ended", () => {
  moves.zoomBy(2);
  pass(2 * DURATION_MS);
  view.setResolution(10);
  view.animate({ center: [7, 7], duration: DURATION_MS });
  pass(HALF_WAY_MS);
  moves.zoomBy(2);
  pass(2 * DURATION_MS);
  expect(view.getResolution()).toBe(5);
});
