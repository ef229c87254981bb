/**
 * ROIs that were drawn on another plane: those of the frames of a video on its mosaic, and those of a
 * mosaic in a frame. Dashed, and not to be edited here.
 */

import Feature from "ol/Feature";
import VectorLayer from "ol/layer/Vector";
import VectorSource from "ol/source/Vector";
import Stroke from "ol/style/Stroke";
import Style from "ol/style/Style";

import type { Labels } from "../rois/store/labels";
import type { ProjectedRoi } from "./api";
import { geometryFromL0, mapFromL0 } from "../map/pixel_plane";
import type { GeometryOnMap } from "../map/pixel_plane";
import type { Position } from "../lib/types";

/** A dark edge under the dashes, as under every outline. */
const CASE = new Style({ stroke: new Stroke({ color: "rgba(8, 14, 18, 0.55)", width: 4.5 }) });
/** Largest distance from an outline at which a click hits it. */
const REACH_SCREEN_PX = 4;

export class ProjectedLayer {
  readonly layer: VectorLayer<VectorSource<Feature<GeometryOnMap>>>;
  private readonly source = new VectorSource<Feature<GeometryOnMap>>({ wrapX: false });

  constructor(private readonly labels: Labels) {
    this.layer = new VectorLayer({ source: this.source, className: "projected-rois" });
  }

  show(rois: ProjectedRoi[]): void {
    this.source.clear();
    this.source.addFeatures(
      rois.map((roi) => {
        const feature = new Feature(geometryFromL0(roi.geometry));
        feature.set("roi", roi, true);
        const stroke = new Stroke({ color: this.labels.colorOf(roi.label), width: 2.5, lineDash: [8, 6] });
        feature.setStyle([CASE, new Style({ stroke })]);
        return feature;
      }),
    );
  }

  /** The projected ROI under a point of the plane. */
  at(point: Position, resolution: number): ProjectedRoi | null {
    const [x, y] = mapFromL0(point);
    const reach = REACH_SCREEN_PX * resolution;
    const near = this.source.getFeaturesInExtent([x - reach, y - reach, x + reach, y + reach]);
    const hit = near.find((feature) => feature.getGeometry()?.intersectsCoordinate([x, y]));
    return (hit?.get("roi") as ProjectedRoi | undefined) ?? null;
  }
}

/** Description of a projected ROI. */
export function projectedText(roi: ProjectedRoi, labels: Labels): string {
  const name = roi.name || (roi.label ? labels.nameOf(roi.label) : "A region");
  const where = roi.frame_index === null ? "the mosaic" : `frame ${roi.frame_index + 1} of the video`;
  const sure = roi.uncertainty_px === null ? "" : `, ± ${roi.uncertainty_px.toFixed(2)} px`;
  return `${name}: projected from ${where}${sure}.`;
}

/** The ROI where it was drawn. */
export function projectedHref(roi: ProjectedRoi): string {
  const at = roi.frame_pts === null ? "" : `&t=${roi.frame_pts}`;
  return `/canvases/${roi.drawn_on}/?roi=${roi.roi}${at}`;
}
