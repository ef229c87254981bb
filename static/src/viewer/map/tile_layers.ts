/** Image layers: tiles in the file's grid over the thumbnail. */

import ImageLayer from "ol/layer/Image";
import TileLayer from "ol/layer/Tile";
import ImageStatic from "ol/source/ImageStatic";
import ImageTile from "ol/source/ImageTile";
import type BaseLayer from "ol/layer/Base";
import type Projection from "ol/proj/Projection";

import { mapExtentOf } from "./pixel_plane";
import type { CanvasData } from "../lib/types";
import { tileGridOf } from "./tile_grid";
import { TileLoader } from "./tile_loader";
import { TileRetry } from "./tile_retry";

/** Tiles fade in over the thumbnail instead of flickering. */
const FADE_IN_MS = 120;

export interface CanvasLayers {
  layers: BaseLayer[];
  /** Load missing tiles now. */
  retry: () => void;
  /** The stored values, or colours by the profile that the file carries. */
  showRaw: (isRaw: boolean) => void;
}

export function canvasLayers(
  canvas: CanvasData,
  projection: Projection,
  onMissing: (count: number) => void,
  leaving?: AbortSignal,
): CanvasLayers {
  const loader = new TileLoader(canvas);
  const retry = new TileRetry(onMissing, leaving);
  const sourceOf = (isRaw: boolean): ImageTile =>
    new ImageTile({
      loader: (z, x, y, { signal }) =>
        loader.load(z, x, y, isRaw, signal) as Promise<HTMLCanvasElement | ImageBitmap>,
      tileGrid: tileGridOf(canvas),
      projection,
      wrapX: false,
      transition: FADE_IN_MS,
    });
  const tiles = new TileLayer({ source: sourceOf(false), extent: mapExtentOf(canvas), className: "canvas-tiles" });
  // Decoded tiles are kept by their source: with a new one, neither kind is taken for the other.
  const showRaw = (isRaw: boolean): void => tiles.setSource(sourceOf(isRaw));
  const follow = (): void => {
    const source = tiles.getSource();
    if (source) retry.follow(source);
  };
  tiles.on("change:source", follow);
  follow();
  const thumbnail = thumbnailLayer(canvas, projection);
  return { layers: thumbnail ? [thumbnail, tiles] : [tiles], retry: () => retry.retryNow(), showRaw };
}

/** The thumbnail stretched over the canvas: something to see while tiles load; also the overview. */
export function thumbnailLayer(canvas: CanvasData, projection: Projection): ImageLayer<ImageStatic> | null {
  if (!canvas.thumbnail_url) return null;
  const imageExtent = mapExtentOf(canvas);
  const source = new ImageStatic({ url: canvas.thumbnail_url, imageExtent, projection });
  return new ImageLayer({ source, extent: imageExtent, className: "canvas-thumbnail" });
}
