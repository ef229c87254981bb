/** Both versions of an outline and their common ancestor on the map, distinguished by line style and colour. */

import Feature from "ol/Feature";
import VectorLayer from "ol/layer/Vector";
import VectorSource from "ol/source/Vector";
import Stroke from "ol/style/Stroke";
import Style from "ol/style/Style";
import type { Extent } from "ol/extent";

import { geometryFromL0 } from "../../map/pixel_plane";
import type { GeometryOnMap } from "../../map/pixel_plane";
import type { RoiGeometry } from "../../lib/types";

export type MergeShapes = Partial<Record<"base" | "mine" | "theirs", RoiGeometry>>;

/** Colours that every kind of colour vision can tell apart; viewer/merge.css has the same. */
const LINES = {
  base: { color: "#5b6468", width: 2, lineDash: [2, 5] },
  theirs: { color: "#d55e00", width: 3.5, lineDash: [12, 7] },
  mine: { color: "#0072b2", width: 3.5, lineDash: [] },
};
const CASE = new Stroke({ color: "rgba(255, 255, 255, 0.95)", width: 7 });
/** Line width of the chosen version. */
const CHOSEN_WIDTH = 6;

export class MergeLayer {
  private readonly source = new VectorSource<Feature<GeometryOnMap>>({ wrapX: false });
  readonly layer = new VectorLayer({ source: this.source, className: "merge-outlines" });

  /** `chosen` is drawn thicker. */
  show(shown: MergeShapes, chosen: "mine" | "theirs" | null): void {
    this.source.clear();
    for (const name of ["base", "theirs", "mine"] as const) {
      const geometry = shown[name];
      if (!geometry) continue;
      const feature = new Feature(geometryFromL0(geometry));
      const line = LINES[name];
      const stroke = new Stroke({ ...line, width: name === chosen ? CHOSEN_WIDTH : line.width });
      feature.setStyle([...(name === "base" ? [] : [new Style({ stroke: CASE })]), new Style({ stroke })]);
      this.source.addFeature(feature);
    }
  }

  /** Around all that is shown. */
  extent(): Extent | null {
    return this.source.isEmpty() ? null : this.source.getExtent();
  }
}
