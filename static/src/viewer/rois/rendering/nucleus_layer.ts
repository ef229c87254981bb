/** Nuclei that were counted, as rings: blue for negative ones, yellow, orange and red for 1+, 2+ and 3+. */

import Feature from "ol/Feature";
import MultiPoint from "ol/geom/MultiPoint";
import VectorLayer from "ol/layer/Vector";
import VectorSource from "ol/source/Vector";
import CircleStyle from "ol/style/Circle";
import Stroke from "ol/style/Stroke";
import Style from "ol/style/Style";

import { mapFromL0 } from "../../map/pixel_plane";
import type { Nuclei } from "../store/quantification";

const COLORS = ["#1d6fe0", "#f2c200", "#f07800", "#d0021b"];
const RING_PX = 5;

export class NucleusLayer {
  private readonly source = new VectorSource<Feature>({ wrapX: false });
  readonly layer = new VectorLayer({ source: this.source, className: "canvas-nuclei" });

  /** Number of nuclei that are shown. */
  count = 0;

  show(nuclei: Nuclei | null): void {
    this.source.clear();
    this.count = nuclei?.x.length ?? 0;
    if (!nuclei) return;
    COLORS.forEach((color, bin) => {
      const rows = nuclei.bin.flatMap((one, row) => (one === bin ? [row] : []));
      if (!rows.length) return;
      const points = rows.map((row) => mapFromL0([nuclei.x[row] ?? 0, nuclei.y[row] ?? 0]));
      const feature = new Feature(new MultiPoint(points)); // one for all: thousands would be slow
      feature.setStyle(new Style({ image: new CircleStyle({ radius: RING_PX, stroke: new Stroke({ color, width: 2 }) }) }));
      this.source.addFeature(feature);
    });
  }
}
