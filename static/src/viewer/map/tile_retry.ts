/** Retries failed tiles automatically, with growing pauses, and at once when the browser is online again. */

import DataTile from "ol/DataTile";
import type Tile from "ol/Tile";
import type ImageTileSource from "ol/source/ImageTile";

import { backOffS } from "../lib/back_off";

export class TileRetry {
  private readonly failed = new Set<Tile>();
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;

  /** `onChange` gets the number of missing tiles. */
  constructor(
    private readonly onChange: (missing: number) => void,
    private readonly leaving: AbortSignal = new AbortController().signal,
  ) {
    const options = { signal: leaving };
    addEventListener("online", () => this.retryNow(), options);
    addEventListener("focus", () => this.failed.size && this.retryNow(), options); // back from signing in elsewhere
  }

  /** Watch the tiles of a source instead of the previous one. */
  follow(source: ImageTileSource): void {
    if (this.failed.size) this.onChange(0);
    this.failed.clear();
    source.on("tileloaderror", ({ tile }) => this.add(tile));
    source.on("tileloadend", ({ tile }) => this.remove(tile));
  }

  /** Load what is missing now. */
  retryNow(): void {
    this.failures = 0;
    this.retry();
  }

  private add(tile: Tile): void {
    if (!(tile instanceof DataTile) || tile.getError()?.name === "AbortError") return; // no longer wanted
    this.failed.add(tile);
    this.onChange(this.failed.size);
    this.timer ??= setTimeout(() => this.retry(), 1000 * backOffS(this.failures++));
  }

  private remove(tile: Tile): void {
    this.failures = 0;
    if (this.failed.delete(tile)) this.onChange(this.failed.size);
  }

  private retry(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    if (this.leaving.aborted) return;
    for (const tile of this.failed) tile.load(); // does nothing for one that is under way
  }
}
