/** Tiles over HTTP, with retries; requests a new address if the canvas has new content. */

import { API_ROOT, getJson } from "../lib/http";
import type { CanvasData, Level } from "../lib/types";
import { coarsestFirst } from "./tile_grid";

/** Two more attempts: one soon, one when a busy server may have recovered. */
const RETRY_AFTER_MS = [400, 2000];
/** Tiles that fail together share one request for the canvas. */
const RENEWAL_HOLDS_MS = 5000;
/** The answers to a tile request where another session or another content may help. */
const REFUSED = [401, 403, 404];

/** Fetches tiles, and asks for their address again where it is refused. */
export class TileLoader {
  private renewal: Promise<void> | null = null;
  private readonly levels: Level[];

  constructor(private readonly canvas: CanvasData) {
    this.levels = coarsestFirst(canvas);
  }

  /** @param isRaw leaves the scanner's colour profile out, by which the browser shows colours otherwise. */
  async load(z: number, x: number, y: number, isRaw = false, signal?: AbortSignal): Promise<CanvasImageSource> {
    const level = this.levels[z];
    if (!level) throw new RangeError(`no level ${z}`);
    try {
      return padded(await decodeTile(await this.fetchTile(z, x, y, signal), isRaw), level);
    } catch (error) {
      if (signal?.aborted) throw new DOMException(`tile ${z}/${x}/${y}: no longer wanted`, "AbortError");
      throw error;
    }
  }

  private async fetchTile(z: number, x: number, y: number, signal?: AbortSignal): Promise<Blob> {
    for (let attempt = 0; ; attempt += 1) {
      const status = await this.tryTile(z, x, y, signal);
      if (typeof status !== "number") return status;
      const wait = RETRY_AFTER_MS[attempt];
      if (wait === undefined || signal?.aborted) throw new Error(`tile ${z}/${x}/${y}: ${status}`);
      if (REFUSED.includes(status)) await this.renewAddress();
      else await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  private async tryTile(z: number, x: number, y: number, signal?: AbortSignal): Promise<Blob | number> {
    try {
      const response = await fetch(tileUrl(this.canvas.tile_url ?? "", z, x, y), { signal: signal ?? null });
      return response.ok ? await response.blob() : response.status;
    } catch {
      return 0;
    }
  }

  private renewAddress(): Promise<void> {
    this.renewal ??= getJson<CanvasData>(`${API_ROOT}/canvases/${this.canvas.id}/`)
      .then((fresh) => {
        this.canvas.tile_url = fresh.tile_url;
      })
      .catch(() => undefined)
      .finally(() => setTimeout(() => (this.renewal = null), RENEWAL_HOLDS_MS));
    return this.renewal;
  }
}

function decodeTile(tile: Blob, isRaw: boolean): Promise<ImageBitmap> {
  return createImageBitmap(tile, { colorSpaceConversion: isRaw ? "none" : "default" });
}

function tileUrl(template: string, z: number, x: number, y: number): string {
  return template.replace("{z}", String(z)).replace("{x}", String(x)).replace("{y}", String(y));
}

/** A tile at the edge may be cropped; the map would stretch it over the whole cell of the grid. */
function padded(tile: ImageBitmap, level: Level): CanvasImageSource {
  if (tile.width >= level.tile_width && tile.height >= level.tile_height) return tile;
  const cell = document.createElement("canvas");
  cell.width = level.tile_width;
  cell.height = level.tile_height;
  cell.getContext("2d")?.drawImage(tile, 0, 0);
  tile.close();
  return cell;
}
