import { describe, expect, it } from "vitest";

import { coarsestFirst, tileGridOf } from "@/viewer/map/tile_grid";
import { canvas, level } from "../canvases";

const SLIDE = canvas({ levels: [level(1000, 700, 1), level(300, 210, 10 / 3), level(63, 44, 16)] });

describe("tileGridOf", () => {
  it("has the coarsest level at zoom 0, with the file's own downsamples", () => {
    expect(tileGridOf(SLIDE).getResolutions()).toEqual([16, 10 / 3, 1]);
  });

  it("covers the image with the file's tiles: 4 x 3 of 256 px for 1000 x 700", () => {
    const range = tileGridOf(SLIDE).getFullTileRange(2);
    expect([range?.getWidth(), range?.getHeight()]).toEqual([4, 3]);
  });

  it("puts the first tile at the top left corner", () => {
    const grid = tileGridOf(SLIDE);
    expect(grid.getTileCoordExtent([2, 0, 0])).toEqual([0, -256, 256, 0]);
    expect(grid.getTileCoordExtent([2, 1, 2])).toEqual([256, -768, 512, -512]);
  });
});

it("coarsestFirst leaves the canvas as it was", () => {
  expect(coarsestFirst(SLIDE).map(({ downsample }) => downsample)).toEqual([16, 10 / 3, 1]);
  expect(SLIDE.levels[0]?.downsample).toBe(1);
});
