import View from "ol/View";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { ViewAnimation } from "@/viewer/map/view_animation";

const DURATION_MS = 180;
const HALF_WAY_MS = 60;
const QUARTER = Math.PI / 2;

let view: View;
let moves: ViewAnimation;

/** Time passes, and the browser paints. */
function pass(ms: number): void {
  vi.advanceTimersByTime(ms);
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("requestAnimationFrame", (run: () => void) => setTimeout(run, 16));
  vi.stubGlobal("cancelAnimationFrame", (timer: ReturnType<typeof setTimeout>) => clearTimeout(timer));
  view = new View({ center: [0, 0], resolution: 4, maxResolution: 64, minResolution: 1 / 64, constrainResolution: false });
  moves = new ViewAnimation(view, DURATION_MS);
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
  moves.rotateBy(QUARTER / 2);
  pass(HALF_WAY_MS);
  moves.rotateBy(QUARTER / 2);
  pass(HALF_WAY_MS);
  moves.zoomBy(0.5);
  pass(2 * DURATION_MS);
  expect(view.getResolution()).toBe(2);
  expect(view.getRotation()).toBeCloseTo(QUARTER, 12);
});

it("is led on by every click of the wheel, without a halt, around what lies under it", () => {
  const anchor = [40, 20];
  const seen: number[] = [];
  for (let click = 0; click < 3; click += 1) {
    moves.zoomAround(anchor, 2);
    pass(HALF_WAY_MS);
    seen.push(view.getResolution() ?? 0);
  }
  expect(seen).toEqual([...seen].sort((a, b) => b - a));
  expect(seen[1]).toBeGreaterThan(1); // no jump to where the first click led
  pass(2 * DURATION_MS);
  expect(view.getResolution()).toBeCloseTo(0.5, 12);
  const [x = 0, y = 0] = view.getCenter() ?? [];
  expect([40 - (40 - x) * 8, 20 - (20 - y) * 8].map((at) => Math.round(at * 1e6) + 0)).toEqual([0, 0]);
});

it("a key goes on from where the wheel leads", () => {
  moves.zoomAround([0, 0], 2);
  pass(HALF_WAY_MS);
  moves.zoomBy(2);
  pass(2 * DURATION_MS);
  expect(view.getResolution()).toBeCloseTo(1, 12);
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
