import Polygon from "ol/geom/Polygon";
import { expect, it } from "vitest";

import { drawnInView, drawnOutline } from "@/viewer/rois/sketch/drawing";

/** A square of so many level-0 pixels. */
const square = (side: number): Polygon => new Polygon([[[0, 0], [side, 0], [side, -side], [0, -side], [0, 0]]]);

/** A circle drawn by hand with a tremor of a twentieth of a pixel. */
function freehand(radius: number, points: number): Polygon {
  const ring = Array.from({ length: points }, (_, i) => {
    const angle = (2 * Math.PI * i) / points;
    const wobbly = radius + (i % 2 ? 0.05 : -0.05);
    return [wobbly * Math.cos(angle), wobbly * Math.sin(angle)];
  });
  return new Polygon([[...ring, ring[0] ?? []]]);
}

it("refuses what is smaller than 4 x 4 pixels of the screen, at any zoom", () => {
  expect(drawnOutline(square(4), "rectangle", 1)).not.toBeNull();
  expect(drawnOutline(square(3.9), "rectangle", 1)).toBeNull();
  expect(drawnOutline(square(31), "rectangle", 8)).toBeNull();
  expect(drawnOutline(square(1), "rectangle", 0.25)).not.toBeNull();
});

it("keeps every vertex that was set by hand", () => {
  const drawn = freehand(100, 400);
  expect(drawnOutline(drawn, "polygon", 1)).toBe(drawn);
});

it.each([0.5, 1, 4])("puts a freehand line on a grid of 0.6 screen pixels at a resolution of %d", (resolution) => {
  const drawn = freehand(100, 1000);
  const kept = drawnOutline(drawn, "freehand", resolution) as Polygon;
  const ring = kept.getCoordinates()[0] ?? [];
  for (const value of ring.flat()) expect(Math.abs(value / (0.6 * resolution) - Math.round(value / (0.6 * resolution)))).toBeLessThan(1e-9);
  expect(ring.length).toBeLessThan(1001);
  expect(kept.getArea() / drawn.getArea()).toBeCloseTo(1, 2);
});

it("keeps a freehand line as it is where the grid would leave nothing of it", () => {
  const sliver = new Polygon([[[0, 0], [100, 0.2], [200, 0], [100, -0.2], [0, 0]]]);
  expect((drawnOutline(sliver, "freehand", 1) as Polygon).getArea()).toBeCloseTo(40, 9);
});

it("draws in the middle of the view, a third as wide and high", () => {
  const view = [0, -600, 900, 0];
  expect(drawnInView("rectangle", view).getExtent()).toEqual([300, -400, 600, -200]);
  expect(drawnInView("ellipse", view).getExtent()).toEqual([300, -400, 600, -200]);
  expect(drawnInView("ellipse", view).getArea()).toBeCloseTo(Math.PI * 150 * 100, -3);
});
