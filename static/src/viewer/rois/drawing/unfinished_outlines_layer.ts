/** Outlines that were put aside: a dashed line with its points, of the frame on screen. */

import Feature from "ol/Feature";
import VectorLayer from "ol/layer/Vector";
import VectorSource from "ol/source/Vector";
import LineString from "ol/geom/LineString";
import MultiPoint from "ol/geom/MultiPoint";
import CircleStyle from "ol/style/Circle";
import Fill from "ol/style/Fill";
import Stroke from "ol/style/Stroke";
import Style from "ol/style/Style";

import { mapFromL0 } from "../../map/pixel_plane";
import type { UnfinishedOutline } from "./unfinished_outlines";

const STYLE = [
  new Style({ stroke: new Stroke({ color: "rgba(255, 255, 255, 0.92)", width: 4.5 }) }),
  new Style({ stroke: new Stroke({ color: "#10151c", width: 2, lineDash: [6, 6] }) }),
  new Style({
    geometry: (feature) => new MultiPoint((feature.getGeometry() as LineString).getCoordinates()),
    image: new CircleStyle({
      radius: 4,
      fill: new Fill({ color: "#10151c" }),
      stroke: new Stroke({ color: "#fff", width: 1.5 }),
    }),
  }),
];

export class UnfinishedOutlinesLayer {
  private readonly source = new VectorSource<Feature<LineString>>({ wrapX: false });
  readonly layer = new VectorLayer({ source: this.source, style: STYLE, className: "open-outlines" });

  show(outlines: UnfinishedOutline[]): void {
    this.source.clear();
    this.source.addFeatures(outlines.map(({ points }) => new Feature(new LineString(points.map(mapFromL0)))));
  }
}
