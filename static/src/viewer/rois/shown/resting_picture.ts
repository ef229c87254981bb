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
import { SlicedPaint, marksOf } from "./sliced_paint";
import type { PaintedView } from "./sliced_paint";

/** After the last change of the zoom: a hand that keeps turning the wheel clicks again within it. */
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

/** What of the ROIs is shown, and where. */
interface Shown {
  revision: number;
  place: PaintedView;
}

class RestingRenderer extends CanvasVectorImageLayerRenderer {
  private resolution = 0;
  private turnedAt = -Infinity;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private shown: Shown | null = null;
  private underway: (Shown & { paint: SlicedPaint }) | null = null;
  /** The canvas on the map and the one before it, where they are ours. */
  private canvases: (HTMLCanvasElement | null)[] = [null, null];

  constructor(
    private readonly picture: RestingPicture,
    private readonly isHeavy: () => boolean,
  ) {
    super(picture);
  }

  override prepareFrame(frame: FrameState): boolean {
    this.notice(frame.viewState.resolution);
    if (!this.image || !this.isHeavy()) return this.all(frame);
    const isAtRest = !frame.viewHints[0] && !frame.viewHints[1] && performance.now() - this.turnedAt >= REST_MS;
    if (isAtRest && !this.isOnItsWay(this.stateOf(frame))) return this.all(frame);
    return super.prepareFrame({ ...frame, viewHints: MOVING });
  }

  override disposeInternal(): void {
    this.end();
    if (this.timer) clearTimeout(this.timer);
    super.disposeInternal();
  }

  /** A zoom that goes on keeps the old picture; when it rests, a frame is asked for. */
  private notice(resolution: number): void {
    if (resolution === this.resolution) return;
    const isFirst = this.resolution === 0;
    this.resolution = resolution;
    if (isFirst || !this.isHeavy()) return;
    this.turnedAt = performance.now();
    if (this.timer) clearTimeout(this.timer);
    this.timer = setTimeout(() => this.picture.getMapInternal()?.render(), REST_MS + 1);
  }

  /** As OpenLayers does: all of it, within this frame. */
  private all(frame: FrameState): boolean {
    this.end();
    if (!frame.viewHints[0] && !frame.viewHints[1]) this.shown = this.stateOf(frame);
    return super.prepareFrame(frame);
  }

  /** Whether it is shown, or being painted from now on at the latest. False: names are to be shown as well. */
  private isOnItsWay(wanted: Shown): boolean {
    if (this.shown && isSame(this.shown, wanted)) return true;
    // A change of the ROIs waits for the picture under way, or many of them would keep it from ever being done.
    if (this.underway && isSame({ ...this.underway, revision: wanted.revision }, wanted)) return true;
    this.end();
    const style = this.picture.getStyleFunction();
    const features = this.picture.getSource()?.getFeaturesInExtent(wanted.place.extent) ?? [];
    const marks = marksOf(features, (feature) => (style?.(feature, wanted.place.resolution) ?? []) as Style[]);
    if (!marks) return false;
    const canvas = this.canvases[1] ?? document.createElement("canvas");
    this.underway = { ...wanted, paint: new SlicedPaint(wanted.place, marks, canvas, () => this.show(wanted, canvas)) };
    return true;
  }

  private end(): void {
    this.underway?.paint.end();
    this.underway = null;
  }

  private show(painted: Shown, canvas: HTMLCanvasElement): void {
    const { center, resolution, rotation, size, pixelRatio } = painted.place;
    const extent = getForViewAndSize(center, resolution, 0, size.map((side) => side / pixelRatio));
    this.image = new ImageCanvas(extent, resolution, pixelRatio, canvas);
    this.renderedRotation = rotation;
    this.canvases = [canvas, this.canvases[0] ?? null];
    [this.shown, this.underway] = [painted, null];
    this.picture.getMapInternal()?.render();
  }

  private stateOf({ viewState, pixelRatio, size: screen }: FrameState): Shown {
    const { center, resolution, rotation } = viewState;
    const ratio = this.picture.getImageRatio();
    const [width = 0, height = 0] = screen.map((side) => {
      const whole = Math.round(side * pixelRatio);
      return whole + 2 * Math.round((whole * (ratio - 1)) / 2);
    });
    const extent = getForViewAndSize(center, resolution, rotation, [width / pixelRatio, height / pixelRatio]);
    const place: PaintedView = { center: [...center], resolution, rotation, pixelRatio, size: [width, height], extent };
    return { revision: this.picture.getRevision(), place };
  }
}

function isSame(a: Shown, b: Shown): boolean {
  return a.revision === b.revision && JSON.stringify(a.place) === JSON.stringify(b.place);
}
