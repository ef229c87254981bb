/** Paints thousands of features into a picture, some with each frame, so that no frame waits for all of them. */

import type Feature from "ol/Feature";
import CanvasImmediateRenderer from "ol/render/canvas/Immediate";
import type Style from "ol/style/Style";
import { compose, create } from "ol/transform";

/** A hundred outlines are painted within the time of a frame, also where no graphics card helps. */
export const FEATURES_PER_FRAME = 100;

/** View of a painted image, in map units except for its size. */
export interface PaintedView {
  center: number[];
  resolution: number;
  rotation: number;
  pixelRatio: number;
  /** Width and height in screen pixels. */
  size: [number, number];
  /** Extent that may be visible on it. */
  extent: number[];
}

interface StyledFeature {
  feature: Feature;
  style: Style;
}

export class IncrementalPaint {
  private readonly context: CanvasRenderingContext2D;
  private readonly renderer: CanvasImmediateRenderer;
  private next = 0;
  private frame = 0;

  /** Start with the next frame; report completion. */
  constructor(
    picture: PaintedView,
    private readonly marks: StyledFeature[],
    canvas: HTMLCanvasElement,
    private readonly onDone: () => void,
  ) {
    const { center, resolution, rotation, pixelRatio, size, extent } = picture;
    [canvas.width, canvas.height] = size; // cleared
    // Painted by the processor at once: nothing is left to be done when the picture is shown.
    const context = canvas.getContext("2d", { willReadFrequently: true });
    if (!context) throw new Error("The browser gives no canvas to paint on.");
    this.context = context;
    const scale = pixelRatio / resolution;
    const [x = 0, y = 0] = center;
    const transform = compose(create(), size[0] / 2, size[1] / 2, scale, -scale, -rotation, -x, -y);
    const squaredTolerance = (resolution / (2 * pixelRatio)) ** 2;
    this.renderer = new CanvasImmediateRenderer(context, pixelRatio, extent, transform, rotation, squaredTolerance);
    this.frame = requestAnimationFrame(this.step);
  }

  cancel(): void {
    cancelAnimationFrame(this.frame);
  }

  private readonly step = (): void => {
    for (const { feature, style } of this.marks.slice(this.next, this.next + FEATURES_PER_FRAME)) {
      this.renderer.drawFeature(feature, style);
    }
    this.next += FEATURES_PER_FRAME;
    this.context.getImageData(0, 0, 1, 1); // forces the recorded commands to be executed
    if (this.next >= this.marks.length) this.onDone();
    else this.frame = requestAnimationFrame(this.step);
  };
}

/** Features with their styles, in the order of painting; null if one bears a text, which finds its place among all. */
export function styledFeaturesOf(features: Feature[], styles: (feature: Feature) => Style[]): StyledFeature[] | null {
  const marks = features.flatMap((feature) => styles(feature).map((style) => ({ feature, style })));
  if (marks.some(({ style }) => style.getText())) return null;
  return marks.sort((a, b) => (a.style.getZIndex() ?? 0) - (b.style.getZIndex() ?? 0));
}
