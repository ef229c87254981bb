/** Tile grid of the file for OpenLayers. */

import TileGrid from "ol/tilegrid/TileGrid";

import type { CanvasData, Level } from "../lib/types";
import { mapExtentOf } from "./pixel_plane";

/** Zoom 0 is the coarsest level; a downsample need not be a whole number. */
export function tileGridOf(canvas: CanvasData): TileGrid {
  const levels = coarsestFirst(canvas);
  return new TileGrid({
    origin: [0, 0],
    extent: mapExtentOf(canvas),
    resolutions: levels.map((level) => level.downsample),
    tileSizes: levels.map((level) => [level.tile_width, level.tile_height]),
    sizes: levels.map((level) => [
      Math.ceil(level.width / level.tile_width),
      Math.ceil(level.height / level.tile_height),
    ]),
  });
}

/** The levels in the order of the zoom. */
export function coarsestFirst(canvas: CanvasData): Level[] {
  return [...canvas.levels].sort((a, b) => b.downsample - a.downsample);
}
