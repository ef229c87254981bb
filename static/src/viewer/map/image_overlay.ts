/** A picture laid over the whole canvas: the frame of a video, a layer of a mosaic. */

import ImageLayer from "ol/layer/Image";
import ImageCanvasSource from "ol/source/ImageCanvas";
import type { Extent } from "ol/extent";
import type Projection from "ol/proj/Projection";
import type { Size } from "ol/size";

interface Picture {
  image: CanvasImageSource;
  /** The size it is drawn at, in level-0 pixels, from the canvas' top left corner. */
  width: number;
  height: number;
}

export interface OverlayOptions {
  className: string;
  opacity?: number;
  /** Below so many level-0 pixels per screen pixel its pixels are drawn as squares. */
  squaresBelow?: number;
}

export class ImageOverlay {
  readonly layer: ImageLayer<ImageCanvasSource>;
  private readonly source: ImageCanvasSource;
  private readonly surface = document.createElement("canvas");
  private readonly squaresBelow: number;
  private shown: Picture | null = null;

  constructor(projection: Projection, { squaresBelow = 0, ...options }: OverlayOptions) {
    this.squaresBelow = squaresBelow;
    this.source = new ImageCanvasSource({
      projection,
      ratio: 1,
      canvasFunction: (extent, resolution, pixelRatio, size) => this.paint(extent, resolution / pixelRatio, size),
    });
    this.layer = new ImageLayer({ source: this.source, ...options });
  }

  show(picture: Picture): void {
    this.shown = picture;
    this.source.changed();
  }

  private paint([left = 0, , , top = 0]: Extent, resolution: number, [width = 1, height = 1]: Size): HTMLCanvasElement {
    this.surface.width = Math.max(1, Math.round(width));
    this.surface.height = Math.max(1, Math.round(height));
    const context = this.surface.getContext("2d");
    if (!context || !this.shown) return this.surface;
    const { image, width: across, height: down } = this.shown;
    context.imageSmoothingEnabled = resolution > this.squaresBelow;
    context.drawImage(image, -left / resolution, top / resolution, across / resolution, down / resolution);
    return this.surface;
  }
}
