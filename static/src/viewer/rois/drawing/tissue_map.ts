/** Tissue and glass on the thumbnail of an image. */

import type { CanvasData } from "../../lib/types";
import type { Bounds } from "../shapes/outlines";

/** A field holds tissue if this share of its pixels is tissue. */
export const LEAST_TISSUE = 0.5;
/** Optical density of 0.06 in the densest channel, from which `ml.quantification` counts a pixel as tissue. */
const BRIGHTEST_TISSUE = 255 * 10 ** -0.06;

type Pixels = Pick<ImageData, "data" | "width" | "height">;

/** Share of tissue within level-0 bounds of an image of this size; a field between pixels has the one it is in. */
export function tissueShare({ data, width, height }: Pixels, [left, top, right, bottom]: Bounds, image: [number, number]): number {
  const range = (low: number, high: number, size: number, pixels: number): [number, number] => {
    const from = Math.min(Math.max(Math.floor((low / size) * pixels), 0), pixels - 1);
    return [from, Math.max(Math.min(Math.ceil((high / size) * pixels), pixels), from + 1)];
  };
  const [x0, x1] = range(left, right, image[0], width);
  const [y0, y1] = range(top, bottom, image[1], height);
  let tissue = 0;
  for (let y = y0; y < y1; y += 1) {
    for (let at = 4 * (y * width + x0); at < 4 * (y * width + x1); at += 4) {
      if (Math.min(data[at] ?? 255, data[at + 1] ?? 255, data[at + 2] ?? 255) <= BRIGHTEST_TISSUE) tissue += 1;
    }
  }
  return tissue / ((x1 - x0) * (y1 - y0));
}

export class TissueMap {
  private pixels: Pixels | null = null;
  private isLoading = false;

  constructor(private readonly canvas: Pick<CanvasData, "width" | "height" | "thumbnail_url">) {}

  get isAvailable(): boolean {
    return this.canvas.thumbnail_url !== null;
  }

  /** Read the thumbnail, once. */
  async load(): Promise<void> {
    if (this.isLoading || !this.canvas.thumbnail_url) return;
    this.isLoading = true;
    const image = new Image();
    image.src = this.canvas.thumbnail_url;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context?.drawImage(image, 0, 0);
    this.pixels = context?.getImageData(0, 0, canvas.width, canvas.height) ?? null;
  }

  /** Share of tissue within bounds; null until the thumbnail was read. */
  share(bounds: Bounds): number | null {
    return this.pixels && tissueShare(this.pixels, bounds, [this.canvas.width, this.canvas.height]);
  }
}
