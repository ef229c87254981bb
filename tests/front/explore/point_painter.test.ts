import { describe, expect, it } from "vitest";

import type { PointColumns, PointTransform } from "@/explore/point_painter";
import { PointImage, HIDDEN, rgbaOf } from "@/explore/point_painter";

const RED = rgbaOf("#e01002");
const BLUE = rgbaOf("#0203f0");
const AS_IS: PointTransform = { scale: 1, left: 0, top: 0 };
const [WIDTH, HEIGHT, MARGIN] = [20, 12, 10];

interface Asked {
  readonly rgba?: readonly number[];
  readonly chosen?: readonly number[] | null;
  readonly view?: PointTransform;
  readonly size?: number;
}

function painted(places: PointColumns, { rgba, chosen = null, view = AS_IS, size = 2 }: Asked = {}): PointImage {
  const picture = new PointImage(WIDTH, HEIGHT, MARGIN);
  const colors = Uint32Array.from(rgba ?? places.x.map(() => RED));
  picture.paint(places, colors, chosen && Uint8Array.from(chosen), view, size);
  return picture;
}

/** Red, green, blue and opacity of a pixel of what is seen. */
function pixel(picture: PointImage, x: number, y: number): number[] {
  const at = 4 * ((y + MARGIN) * picture.width + x + MARGIN);
  return [...picture.bytes.slice(at, at + 4)];
}

/** Pixels of what is seen that anything was painted on. */
function count(picture: PointImage): number {
  let found = 0;
  for (let y = 0; y < HEIGHT; y++) for (let x = 0; x < WIDTH; x++) found += Number(pixel(picture, x, y)[3] !== 0);
  return found;
}

describe("dots in a picture", () => {
  it("are squares in their colours about their places", () => {
    const picture = painted({ x: [5, 12], y: [5, 8] }, { rgba: [RED, BLUE] });
    for (const [x, y] of [[4, 4], [5, 4], [4, 5], [5, 5]] as const) expect(pixel(picture, x, y)).toEqual([0xe0, 0x10, 0x02, 230]); // prettier-ignore
    expect(pixel(picture, 12, 8)).toEqual([0x02, 0x03, 0xf0, 230]);
    expect(count(picture)).toBe(8);
  });

  it("lie where the view has them, and those without a colour nowhere", () => {
    const view = { scale: 0.5, left: 2, top: -1 };
    const picture = painted({ x: [10, 20], y: [10, 12] }, { rgba: [RED, HIDDEN], view });
    expect(pixel(picture, 7, 4)[3]).toBe(230);
    expect(count(picture)).toBe(4);
  });

  it("are dimmed and below where others are chosen, whatever the order", () => {
    for (const order of [[1, 0], [0, 1]]) {
      const picture = painted({ x: [5, 6], y: [5, 5] }, { rgba: order.map((one) => (one ? RED : BLUE)), chosen: order });
      const left = order[0] ? 4 : 6; // the pixel that the chosen one has for itself
      expect(pixel(picture, left, 5)).toEqual([0xe0, 0x10, 0x02, 230]);
      expect(pixel(picture, 5, 5)).toEqual([0xe0, 0x10, 0x02, 230]);
      expect(pixel(picture, 10 - left, 5)).toEqual([0x02, 0x03, 0xf0, 38]);
    }
  });

  it("are round and soft where they are large, and no rim wears another dot away", () => {
    const alone = painted({ x: [8], y: [6] }, { size: 9 });
    expect(pixel(alone, 8, 6)[3]).toBe(230);
    expect(pixel(alone, 4, 2)[3]).toBe(0); // the corner of its square
    expect(count(alone)).toBeGreaterThan(0.9 * Math.PI * 4.5 ** 2);
    const both = painted({ x: [8, 11], y: [6, 6] }, { rgba: [RED, BLUE], size: 9 });
    for (let x = 0; x < WIDTH; x++) for (let y = 0; y < HEIGHT; y++) expect(pixel(both, x, y)[3]).toBeGreaterThanOrEqual(pixel(alone, x, y)[3] ?? 0);
  });

  it("at the edge are cut by it, and far outside they are nowhere", () => {
    expect(count(painted({ x: [0, WIDTH], y: [6, HEIGHT] }, { size: 4 }))).toBe(2 * 4 + 2 * 2);
    const far = [-1e6, -15, WIDTH + 15, 1e6, 5, 5];
    expect(count(painted({ x: far, y: [5, 5, 5, 5, -500, 1e7] }, { size: 10 }))).toBe(0);
  });

  it("are those that a look at each pixel finds", () => {
    let seed = 3;
    const next = (most: number): number => (seed = (seed * 48_271) % 2_147_483_647) % most;
    const x = Array.from({ length: 400 }, () => next(WIDTH + 8) - 4);
    const y = Array.from({ length: 400 }, () => next(HEIGHT + 8) - 4);
    const rgba = x.map(() => [RED, BLUE, HIDDEN][next(3)] ?? HIDDEN);
    const picture = painted({ x, y }, { rgba });
    for (let row = 0; row < HEIGHT; row++) {
      for (let column = 0; column < WIDTH; column++) {
        const last = x.findLastIndex((at, n) => {
          const [left, top] = [at - 1, (y[n] ?? 0) - 1];
          return rgba[n] !== HIDDEN && column >= left && column < left + 2 && row >= top && row < top + 2;
        });
        const wanted = last < 0 ? [0, 0, 0, 0] : rgba[last] === RED ? [0xe0, 0x10, 0x02, 230] : [0x02, 0x03, 0xf0, 230];
        expect(pixel(picture, column, row)).toEqual(wanted);
      }
    }
  });

  it("are painted anew each time, in a picture of the size that is asked for", () => {
    const picture = painted({ x: [5], y: [5] });
    picture.paint({ x: [], y: [] }, new Uint32Array(), null, AS_IS, 2);
    expect(count(picture)).toBe(0);
    expect(picture.fits(WIDTH, HEIGHT, MARGIN)).toBe(true);
    expect(picture.fits(WIDTH + 1, HEIGHT, MARGIN)).toBe(false);
  });
});
