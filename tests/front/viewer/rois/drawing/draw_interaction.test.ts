import Polygon from "ol/geom/Polygon";
import { expect, it } from "vitest";

import { geometryFromL0, geometryToL0 } from "@/viewer/map/pixel_plane";
import type { AreaGeometry, Position } from "@/viewer/lib/types";
import { areaPx } from "@/viewer/rois/shapes/areas";
import { shapeInView, drawnOutline } from "@/viewer/rois/drawing/draw_interaction";

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

const onMap = (outline: AreaGeometry | null): Polygon => geometryFromL0(outline as AreaGeometry) as Polygon;

it("keeps both loops of an eight, and not the sliver where the ends of an outline overlap", () => {
  const eight = new Polygon([[[0, 0], [40, -40], [40, 0], [0, -40], [0, 0]]]);
  const loops = drawnOutline(eight, "polygon", 1);
  expect(loops?.type).toBe("MultiPolygon");
  expect(loops?.coordinates.map((rings) => areaPx(rings as Position[][]))).toEqual([400, 400]);
  const overlapping = new Polygon([[[0, 0], [40, 0], [40, -40], [0, -40], [0, 5], [5, 5], [5, -2], [0, 0]]]);
  expect(drawnOutline(overlapping, "freehand", 1)?.type).toBe("Polygon");
});

it("refuses what is smaller than 4 x 4 pixels of the screen, at any zoom", () => {
  expect(drawnOutline(square(4), "rectangle", 1)).not.toBeNull();
  expect(drawnOutline(square(3.9), "rectangle", 1)).toBeNull();
  expect(drawnOutline(square(31), "rectangle", 8)).toBeNull();
  expect(drawnOutline(square(1), "rectangle", 0.25)).not.toBeNull();
});

it("keeps every vertex that was set by hand", () => {
  const drawn = freehand(100, 400);
  expect(drawnOutline(drawn, "polygon", 1)).toEqual(geometryToL0(drawn));
});

it.each([0.5, 1, 4])("puts a freehand line on a grid of 0.6 screen pixels at a resolution of %d", (resolution) => {
  const drawn = freehand(100, 1000);
  const kept = onMap(drawnOutline(drawn, "freehand", resolution));
  const ring = kept.getCoordinates()[0] ?? [];
  for (const value of ring.flat()) expect(Math.abs(value / (0.6 * resolution) - Math.round(value / (0.6 * resolution)))).toBeLessThan(1e-9);
  expect(ring.length).toBeLessThan(1001);
  expect(kept.getArea() / drawn.getArea()).toBeCloseTo(1, 2);
});

it("keeps a freehand line as it is where the grid would leave nothing of it", () => {
  const sliver = new Polygon([[[0, 0], [100, 0.2], [200, 0], [100, -0.2], [0, 0]]]);
  expect(onMap(drawnOutline(sliver, "freehand", 1)).getArea()).toBeCloseTo(40, 9);
});

it("draws in the middle of the view, a third as wide and high", () => {
  const view = [0, -600, 900, 0];
  expect(shapeInView("rectangle", view).getExtent()).toEqual([300, -400, 600, -200]);
  expect(shapeInView("ellipse", view).getExtent()).toEqual([300, -400, 600, -200]);
  expect(shapeInView("ellipse", view).getArea()).toBeCloseTo(Math.PI * 150 * 100, -3);
});
