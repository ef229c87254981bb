/** Points of a map as the server sends them, and a spatial index. */

import type { Schemas } from "../api/schemas";

export type ColourValue = Schemas["MapColour"];
export type Colouring = Schemas["MapColouring"];
/** Points in columns; x and y from 0 to 65535, y downwards. */
export type MapPoints = Schemas["MapPoints"];

export const PLANE_SIDE = 65_535; // the side of the plane, as the server counts it

const CELLS = 128; // along each side: of 100,000 points spread evenly a cell holds six

export type MapPoint = readonly [number, number];

/** Points indexed by cells of the plane, for the nearest point and points in an outline. */
export class PointGrid {
  private readonly cells = new Map<number, number[]>();

  constructor(private readonly points: MapPoints) {
    for (let at = 0; at < points.rois.length; at++) {
      const key = this.cell(points.x[at] ?? 0) + CELLS * this.cell(points.y[at] ?? 0);
      const indices = this.cells.get(key);
      if (indices) indices.push(at);
      else this.cells.set(key, [at]);
    }
  }

  /** The nearest point that `isShown`, within `reach` (in units of the plane); -1 where there is none. */
  nearest([x, y]: MapPoint, reach: number, isShown: (at: number) => boolean): number {
    let best = -1;
    let nearestSquared = reach * reach;
    for (const at of this.pointsInBox(x - reach, y - reach, x + reach, y + reach)) {
      const squared = ((this.points.x[at] ?? 0) - x) ** 2 + ((this.points.y[at] ?? 0) - y) ** 2;
      if (squared <= nearestSquared && isShown(at)) {
        best = at;
        nearestSquared = squared;
      }
    }
    return best;
  }

  /** Points inside an outline, in their order. */
  inside(outline: readonly MapPoint[]): number[] {
    if (outline.length < 3) return [];
    const xs = outline.map(([x]) => x);
    const ys = outline.map(([, y]) => y);
    const bounds = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)] as const;
    const hits = [...this.pointsInBox(...bounds)].filter((at) =>
      isInside(this.points.x[at] ?? 0, this.points.y[at] ?? 0, xs, ys),
    );
    return hits.sort((a, b) => a - b);
  }

  private *pointsInBox(left: number, top: number, right: number, bottom: number): Generator<number> {
    for (let row = this.cell(top); row <= this.cell(bottom); row++) {
      for (let column = this.cell(left); column <= this.cell(right); column++) {
        yield* this.cells.get(column + CELLS * row) ?? [];
      }
    }
  }

  private cell(value: number): number {
    return Math.max(0, Math.min(CELLS - 1, Math.floor((value / (PLANE_SIDE + 1)) * CELLS)));
  }
}

/** Even-odd rule; the outline is in columns, because a hundred thousand points are tested against it. */
export function isInside(x: number, y: number, xs: readonly number[], ys: readonly number[]): boolean {
  let inside = false;
  for (let at = 0, before = xs.length - 1; at < xs.length; before = at++) {
    const ay = ys[at] ?? 0;
    const by = ys[before] ?? 0;
    if (ay > y === by > y) continue;
    const ax = xs[at] ?? 0;
    if (x < (((xs[before] ?? 0) - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

const BATCH_SIZE = 5_000; // of one request

/** Points grouped by image and split into requests; each request is one undo step of the image. */
export function relabelBatches(ids: readonly number[], points: MapPoints): { canvas: string; ids: number[] }[] {
  const byCanvas = new Map<string, number[]>();
  for (const at of ids) {
    const canvas = points.canvases[points.canvas[at] ?? 0]?.id ?? "";
    const idsOfCanvas = byCanvas.get(canvas);
    if (idsOfCanvas) idsOfCanvas.push(at);
    else byCanvas.set(canvas, [at]);
  }
  return [...byCanvas].flatMap(([canvas, canvasIds]) =>
    Array.from({ length: Math.ceil(canvasIds.length / BATCH_SIZE) }, (_, part) => ({
      canvas,
      ids: canvasIds.slice(part * BATCH_SIZE, (part + 1) * BATCH_SIZE),
    })),
  );
}

/** A request that changed nothing. */
export interface Refused {
  canvas: string;
  reason: string;
}

/** Text of the number of images whose regions kept their label, with the first reason. */
export function skippedText(refused: readonly Refused[]): string {
  const count = new Set(refused.map(({ canvas }) => canvas)).size;
  return `On ${count === 1 ? "1 image" : `${count.toLocaleString("en")} images`} regions were left as they are: ${refused[0]?.reason ?? ""}`;
}
