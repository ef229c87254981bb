import { describe, expect, it } from "vitest";

import type { MapPoints, MapPoint } from "@/explore/map_points";
import { PLANE_SIDE, PointGrid, isInside, skippedText, relabelBatches } from "@/explore/map_points";

function points(...places: MapPoint[]): MapPoints {
  return {
    rois: places.map((_, at) => `roi-${at}`),
    versions: places.map(() => 1),
    x: places.map(([x]) => x),
    y: places.map(([, y]) => y),
    canvas: places.map(() => 0),
    canvases: [{ id: "canvas", name: "Section", accession: "A-1" }],
    colourings: [],
  };
}

/** Numbers that look random and are the same each time. */
function* numbers(seed: number): Generator<number> {
  for (let value = seed; ; value = (value * 48_271) % 2_147_483_647) yield value / 2_147_483_647;
}

function scattered(count: number, seed: number): MapPoint[] {
  const next = numbers(seed);
  const one = (): number => Math.round((next.next().value as number) * PLANE_SIDE);
  return Array.from({ length: count }, () => [one(), one()] as const);
}

const columns = (ring: readonly MapPoint[]): [number[], number[]] => [ring.map(([x]) => x), ring.map(([, y]) => y)];

const every = (): boolean => true;

describe("the nearest point", () => {
  it("is the one that a look at all of them finds", () => {
    const places = scattered(2_000, 7);
    const grid = new PointGrid(points(...places));
    for (const [x, y] of scattered(200, 11)) {
      const far = places.map(([px, py]) => Math.hypot(px - x, py - y));
      const least = Math.min(...far);
      for (const reach of [least * 0.99, least * 1.01, 6_000]) {
        const found = grid.nearest([x, y], reach, every);
        if (least > reach) expect(found).toBe(-1);
        else expect(far[found]).toBeCloseTo(least);
      }
    }
  });

  it("is none that is hidden, and none beyond the reach", () => {
    const grid = new PointGrid(points([100, 100], [130, 100]));
    expect(grid.nearest([110, 100], 50, every)).toBe(0);
    expect(grid.nearest([110, 100], 50, (at) => at !== 0)).toBe(1);
    expect(grid.nearest([110, 100], 5, every)).toBe(-1);
    expect(grid.nearest([110, 100], 10, every)).toBe(0); // just reached
  });

  it("is found in the corners of the plane and from outside of it", () => {
    const grid = new PointGrid(points([0, 0], [PLANE_SIDE, PLANE_SIDE]));
    expect(grid.nearest([-50, -50], 80, every)).toBe(0);
    expect(grid.nearest([PLANE_SIDE + 50, PLANE_SIDE + 50], 80, every)).toBe(1);
    expect(new PointGrid(points()).nearest([1, 1], PLANE_SIDE, every)).toBe(-1);
  });
});

describe("points in an outline", () => {
  it("are those that a look at all of them finds, in their order", () => {
    const places = scattered(3_000, 3);
    const star: MapPoint[] = Array.from({ length: 14 }, (_, at) => {
      const radius = at % 2 ? 8_000 : 28_000;
      const turn = (at / 14) * 2 * Math.PI;
      return [30_000 + radius * Math.cos(turn), 30_000 + radius * Math.sin(turn)];
    });
    const slow = places.flatMap((place, at) => (isInside(...place, ...columns(star)) ? [at] : []));
    expect(slow.length).toBeGreaterThan(100);
    expect(new PointGrid(points(...places)).inside(star)).toEqual(slow);
  });

  it("are none of an outline that is a click or a line", () => {
    const grid = new PointGrid(points([10, 10]));
    expect(grid.inside([])).toEqual([]);
    expect(grid.inside([[10, 10], [20, 20]])).toEqual([]); // prettier-ignore
  });

  it("go by the even-odd rule where the outline crosses itself", () => {
    const twice: MapPoint[] = [[0, 0], [10, 0], [10, 10], [0, 10], [0, 0], [8, 2], [8, 8], [2, 8], [2, 2], [8, 2]]; // prettier-ignore
    expect(isInside(1, 9, ...columns(twice))).toBe(true);
    expect(isInside(5, 6, ...columns(twice))).toBe(false); // around it twice
    expect(isInside(11, 5, ...columns(twice))).toBe(false);
  });
});

describe("changes of many regions", () => {
  it("are made image by image, thousands at once", () => {
    const places = Array.from({ length: 12_003 }, (): MapPoint => [1, 1]);
    const map = { ...points(...places), canvas: places.map((_, at) => Number(at >= 12_000)) };
    const canvases = ["one", "two"].map((id) => ({ id, name: id, accession: "" }));
    const steps = relabelBatches([...places.keys()], { ...map, canvases });
    expect(steps.map(({ canvas, ids }) => [canvas, ids.length])).toEqual([
      ["one", 5_000],
      ["one", 5_000],
      ["one", 2_000],
      ["two", 3],
    ]);
    expect(steps.flatMap(({ ids }) => ids)).toEqual([...places.keys()]);
    expect(relabelBatches([], map)).toEqual([]);
  });
});

it("counts images that were left as they are, not requests", () => {
  const reason = "Someone else changed it.";
  expect(skippedText([{ canvas: "a", reason }, { canvas: "a", reason: "Another." }])).toBe(`On 1 image regions were left as they are: ${reason}`);
  expect(skippedText([{ canvas: "a", reason }, { canvas: "b", reason }])).toBe(`On 2 images regions were left as they are: ${reason}`);
});
