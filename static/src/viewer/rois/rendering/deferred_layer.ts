/**
 * The picture of all ROIs. Where there are thousands, OpenLayers would paint them within one frame whenever the view
 * comes to rest, which takes as long as ten frames: the next click of the wheel would wait for it. Here the old
 * picture stays, moved and scaled, until a new one is painted, part by part.
 */

import VectorImageLayer from "ol/layer/VectorImage";
import ImageCanvas from "ol/ImageCanvas";
import CanvasVectorImageLayerRenderer from "ol/renderer/canvas/VectorImageLayer";
import { getForViewAndSize } from "ol/extent";
import type Feature from "ol/Feature";
import type { FrameState } from "ol/Map";
import type VectorSource from "ol/source/Vector";
import type Style from "ol/style/Style";

import type { GeometryOnMap } from "../../map/pixel_plane";
import { IncrementalPaint, styledFeaturesOf } from "./incremental_paint";
import type { PaintedView } from "./incremental_paint";

/** Pause after the last zoom change before repainting. */
const REST_MS = 300;
/** OpenLayers' view hints (animating, interacting) of a moving view: the old image is moved along. */
const MOVING = [1, 0];

export class DeferredImageLayer extends VectorImageLayer<VectorSource<Feature<GeometryOnMap>>> {
  /** True if painting is slow and has to be deferred. */
  isHeavy: () => boolean = () => false;

  override createRenderer(): CanvasVectorImageLayerRenderer {
    return new DeferredRenderer(this, () => this.isHeavy());
  }
}

/** Revision and view of a painted image. */
interface PaintedState {
  revision: number;
  place: PaintedView;
}

class DeferredRenderer extends CanvasVectorImageLayerRenderer {
  private resolution = 0;
  private zoomedAt = -Infinity;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private shown: PaintedState | null = null;
  private inProgress: (PaintedState & { paint: IncrementalPaint }) | null = null;
  /** The canvas on the map and the one before it, where they are ours. */
  private canvases: (HTMLCanvasElement | null)[] = [null, null];

  constructor(
    private readonly picture: DeferredImageLayer,
    private readonly isHeavy: () => boolean,
  ) {
    super(picture);
  }

  override prepareFrame(frame: FrameState): boolean {
    this.trackZoom(frame.viewState.resolution);
    if (!this.image || !this.isHeavy()) return this.paintNow(frame);
    const isAtRest = !frame.viewHints[0] && !frame.viewHints[1] && performance.now() - this.zoomedAt >= REST_MS;
    if (isAtRest && !this.isPainting(this.stateOf(frame))) return this.paintNow(frame);
    return super.prepareFrame({ ...frame, viewHints: MOVING });
  }

  override disposeInternal(): void {
    this.cancel();
    if (this.timer) clearTimeout(this.timer);
    super.disposeInternal();
  }

  /** Keep the old image during a zoom, and request a frame when it ends. */
  private trackZoom(resolution: number): void {
    if (resolution === this.resolution) return;
    const isFirst = this.resolution === 0;
    this.resolution = resolution;
    if (isFirst || !this.isHeavy()) return;
    this.zoomedAt = performance.now();
    if (this.timer) clearTimeout(this.timer);
    this.timer = setTimeout(() => this.picture.getMapInternal()?.render(), REST_MS + 1);
  }

  /** Paint everything within this frame, as OpenLayers does. */
  private paintNow(frame: FrameState): boolean {
    this.cancel();
    if (!frame.viewHints[0] && !frame.viewHints[1]) this.shown = this.stateOf(frame);
    return super.prepareFrame(frame);
  }

  /** True if the picture is shown or being painted; false if names have to be shown as well. */
  private isPainting(state: PaintedState): boolean {
    if (this.shown && isSame(this.shown, state)) return true;
    // A change of the ROIs waits for the picture under way, or many of them would keep it from ever being done.
    if (this.inProgress && isSame({ ...this.inProgress, revision: state.revision }, state)) return true;
    this.cancel();
    const style = this.picture.getStyleFunction();
    const features = this.picture.getSource()?.getFeaturesInExtent(state.place.extent) ?? [];
    const marks = styledFeaturesOf(features, (feature) => (style?.(feature, state.place.resolution) ?? []) as Style[]);
    if (!marks) return false;
    const canvas = this.canvases[1] ?? document.createElement("canvas");
    this.inProgress = { ...state, paint: new IncrementalPaint(state.place, marks, canvas, () => this.show(state, canvas)) };
    return true;
  }

  private cancel(): void {
    this.inProgress?.paint.cancel();
    this.inProgress = null;
  }

  private show(painted: PaintedState, canvas: HTMLCanvasElement): void {
    const { center, resolution, rotation, size, pixelRatio } = painted.place;
    const extent = getForViewAndSize(center, resolution, 0, size.map((side) => side / pixelRatio));
    this.image = new ImageCanvas(extent, resolution, pixelRatio, canvas);
    this.renderedRotation = rotation;
    this.canvases = [canvas, this.canvases[0] ?? null];
    [this.shown, this.inProgress] = [painted, null];
    this.picture.getMapInternal()?.render();
  }

  private stateOf({ viewState, pixelRatio, size: screen }: FrameState): PaintedState {
    const { center, resolution, rotation } = viewState;
    const ratio = this.picture.getImageRatio();
    const [width = 0, height = 0] = screen.map((side) => {
      const sidePx = Math.round(side * pixelRatio);
      return sidePx + 2 * Math.round((sidePx * (ratio - 1)) / 2);
    });
    const extent = getForViewAndSize(center, resolution, rotation, [width / pixelRatio, height / pixelRatio]);
    const place: PaintedView = { center: [...center], resolution, rotation, pixelRatio, size: [width, height], extent };
    return { revision: this.picture.getRevision(), place };
  }
}

function isSame(a: PaintedState, b: PaintedState): boolean {
  return a.revision === b.revision && JSON.stringify(a.place) === JSON.stringify(b.place);
}
