/**
 * The picture of all ROIs, painted anew once the zoom rests. Between two clicks of a wheel OpenLayers would paint
 * it each time, which among thousands takes as long as ten frames: the next click would wait for it.
 */

import VectorImageLayer from "ol/layer/VectorImage";
import CanvasVectorImageLayerRenderer from "ol/renderer/canvas/VectorImageLayer";
import type Feature from "ol/Feature";
import type { FrameState } from "ol/Map";
import type VectorSource from "ol/source/Vector";

import type { GeometryOnMap } from "../../map/pixel_plane";

/** After the last change of the zoom. A hand that turns on clicks again within it. */
const REST_MS = 300;
/** As OpenLayers numbers them: animating, interacting. As if the view moved: the picture moves with it. */
const MOVING = [1, 0];

export class RestingPicture extends VectorImageLayer<VectorSource<Feature<GeometryOnMap>>> {
  /** Whether it takes long to paint; what is painted at once is never late. */
  isHeavy: () => boolean = () => false;

  override createRenderer(): CanvasVectorImageLayerRenderer {
    return new RestingRenderer(this, () => this.isHeavy());
  }
}

class RestingRenderer extends CanvasVectorImageLayerRenderer {
  private resolution = 0;
  private turnedAt = -Infinity;
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    layer: VectorImageLayer,
    private readonly isHeavy: () => boolean,
  ) {
    super(layer);
  }

  override prepareFrame(frame: FrameState): boolean {
    const { resolution } = frame.viewState;
    if (resolution !== this.resolution) {
      const isFirst = this.resolution === 0;
      this.resolution = resolution;
      if (!isFirst && this.isHeavy()) this.turned();
    }
    const isTurning = this.image && performance.now() - this.turnedAt < REST_MS;
    return super.prepareFrame(isTurning ? { ...frame, viewHints: MOVING } : frame);
  }

  private turned(): void {
    this.turnedAt = performance.now();
    if (this.timer) clearTimeout(this.timer);
    this.timer = setTimeout(() => this.getLayer().changed(), REST_MS + 1);
  }
}
