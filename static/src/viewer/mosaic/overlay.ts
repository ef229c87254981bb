/** Overlay of a mosaic: outlines of the hovered and the current frame, and the queried point. */

import Feature from "ol/Feature";
import Point from "ol/geom/Point";
import Polygon from "ol/geom/Polygon";
import VectorLayer from "ol/layer/Vector";
import VectorSource from "ol/source/Vector";
import CircleStyle from "ol/style/Circle";
import Fill from "ol/style/Fill";
import Stroke from "ol/style/Stroke";
import Style from "ol/style/Style";

import { mapFromL0 } from "../map/pixel_plane";
import type { Position } from "../lib/types";

/** A dark edge, the frame on the strip, and the frame pointed at: each reads on any mucosa. */
const CASE = "rgba(8, 14, 18, 0.75)";
const HEAD = "#4ee1ec";
const POINTED = "#ffd23f";

function outlineStyles(color: string, fill?: string): Style[] {
  return [
    new Style({ stroke: new Stroke({ color: CASE, width: 5 }), ...(fill ? { fill: new Fill({ color: fill }) } : {}) }),
    new Style({ stroke: new Stroke({ color, width: 2.5 }) }),
  ];
}

const MARK = [
  new Style({ image: new CircleStyle({ radius: 8, stroke: new Stroke({ color: CASE, width: 5 }) }) }),
  new Style({ image: new CircleStyle({ radius: 8, stroke: new Stroke({ color: POINTED, width: 2.5 }) }) }),
  new Style({ image: new CircleStyle({ radius: 1.5, fill: new Fill({ color: POINTED }) }) }),
];

export class MosaicOverlay {
  readonly layer: VectorLayer<VectorSource>;
  private readonly head = new Feature<Polygon>();
  private readonly pointed = new Feature<Polygon>();
  private readonly mark = new Feature<Point>();

  constructor() {
    this.head.setStyle(outlineStyles(HEAD));
    this.pointed.setStyle(outlineStyles(POINTED, "rgba(255, 210, 63, 0.08)"));
    this.mark.setStyle(MARK);
    const source = new VectorSource({ features: [this.head, this.pointed, this.mark], wrapX: false });
    this.layer = new VectorLayer({ source, className: "mosaic-frames", updateWhileAnimating: true });
  }

  showHead(outline: Position[] | null): void {
    this.head.setGeometry(outline ? polygonOf(outline) : undefined);
  }

  showPointed(outline: Position[] | null): void {
    this.pointed.setGeometry(outline ? polygonOf(outline) : undefined);
  }

  showMark(at: Position | null): void {
    this.mark.setGeometry(at ? new Point(mapFromL0(at)) : undefined);
  }
}

function polygonOf(outline: Position[]): Polygon {
  const ring = outline.map(mapFromL0);
  const first = ring[0];
  return new Polygon([first ? [...ring, first] : ring]);
}
