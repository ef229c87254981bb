/** The image: tiles in the file's own grid over the thumbnail, white where nothing is scanned. */

import ImageLayer from "ol/layer/Image";
import TileLayer from "ol/layer/Tile";
import ImageStatic from "ol/source/ImageStatic";
import ImageTile from "ol/source/ImageTile";
import TileGrid from "ol/tilegrid/TileGrid";
import type BaseLayer from "ol/layer/Base";
import type Projection from "ol/proj/Projection";

import { canvasGet } from "../lib/api";
import { mapExtentOf } from "./pixel_plane";
import type { CanvasData, Level } from "../lib/types";

const RETRY_AFTER_MS = [400, 2000];

/** The file's grid. Zoom 0 is the coarsest level; a downsample need not be a whole number. */
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

function coarsestFirst(canvas: CanvasData): Level[] {
  return [...canvas.levels].sort((a, b) => b.downsample - a.downsample);
}

/** Fetches tiles; renews the grant in the address when it has run out; counts what failed. */
export class TileLoader {
  failures = 0;
  private renewal: Promise<void> | null = null;
  private readonly levels: Level[];

  constructor(
    private readonly canvas: CanvasData,
    private readonly onFailure: (count: number) => void,
  ) {
    this.levels = coarsestFirst(canvas);
  }

  async load(z: number, x: number, y: number, signal?: AbortSignal): Promise<CanvasImageSource> {
    const level = this.levels[z];
    if (!level) throw new RangeError(`no level ${z}`);
    try {
      return padded(await this.fetchTile(z, x, y, signal), level);
    } catch (error) {
      if (!signal?.aborted) this.onFailure(++this.failures);
      throw error;
    }
  }

  private async fetchTile(z: number, x: number, y: number, signal?: AbortSignal): Promise<ImageBitmap> {
    for (let attempt = 0; ; attempt += 1) {
      const status = await this.tryTile(z, x, y, signal);
      if (typeof status !== "number") return status;
      const wait = RETRY_AFTER_MS[attempt];
      if (wait === undefined || signal?.aborted) throw new Error(`tile ${z}/${x}/${y}: ${status}`);
      if (status === 401 || status === 403 || status === 404) await this.renewGrant();
      else await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  private async tryTile(z: number, x: number, y: number, signal?: AbortSignal): Promise<ImageBitmap | number> {
    try {
      const response = await fetch(tileUrl(this.canvas.tile_url ?? "", z, x, y), { signal: signal ?? null });
      return response.ok ? await createImageBitmap(await response.blob()) : response.status;
    } catch {
      return 0;
    }
  }

  private renewGrant(): Promise<void> {
    this.renewal ??= canvasGet(this.canvas.id)
      .then((fresh) => {
        this.canvas.tile_url = fresh.tile_url;
      })
      .catch(() => undefined)
      .finally(() => setTimeout(() => (this.renewal = null), 5000));
    return this.renewal;
  }
}

function tileUrl(template: string, z: number, x: number, y: number): string {
  return template.replace("{z}", String(z)).replace("{x}", String(x)).replace("{y}", String(y));
}

/** An edge tile may come cropped; the map would stretch it over the whole cell of the grid. */
function padded(tile: ImageBitmap, level: Level): CanvasImageSource {
  if (tile.width >= level.tile_width && tile.height >= level.tile_height) return tile;
  const cell = document.createElement("canvas");
  cell.width = level.tile_width;
  cell.height = level.tile_height;
  cell.getContext("2d")?.drawImage(tile, 0, 0);
  tile.close();
  return cell;
}

export interface CanvasLayers {
  layers: BaseLayer[];
  retry: () => void;
}

export function canvasLayers(
  canvas: CanvasData,
  projection: Projection,
  onFailure: (count: number) => void,
): CanvasLayers {
  const loader = new TileLoader(canvas, onFailure);
  const source = new ImageTile({
    loader: (z, x, y, { signal }) =>
      loader.load(z, x, y, signal) as Promise<HTMLCanvasElement | ImageBitmap>,
    tileGrid: tileGridOf(canvas),
    projection,
    wrapX: false,
    transition: 120,
  });
  const tiles = new TileLayer({ source, extent: mapExtentOf(canvas), className: "canvas-tiles" });
  const retry = (): void => {
    loader.failures = 0;
    source.refresh();
  };
  const thumbnail = thumbnailLayer(canvas, projection);
  return { layers: thumbnail ? [thumbnail, tiles] : [tiles], retry };
}

/** The thumbnail stretched over the canvas: something to see while tiles load; also the overview. */
export function thumbnailLayer(canvas: CanvasData, projection: Projection): ImageLayer<ImageStatic> | null {
  if (!canvas.thumbnail_url) return null;
  const imageExtent = mapExtentOf(canvas);
  const source = new ImageStatic({ url: canvas.thumbnail_url, imageExtent, projection });
  return new ImageLayer({ source, extent: imageExtent, className: "canvas-thumbnail" });
}
