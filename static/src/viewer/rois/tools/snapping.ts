/** Snap targets: the selected ROI and its neighbours. */

import Collection from "ol/Collection";
import Snap from "ol/interaction/Snap";
import type OlMap from "ol/Map";
import type VectorSource from "ol/source/Vector";

import type { RoiFeature } from "../rendering/roi_layer";

/** Largest number of outlines nearby: with more, a point would snap everywhere. */
const MAX_SNAP_TARGETS = 60;
/** Neighbours within this distance are snap targets. */
const SNAP_REACH_SCREEN_PX = 300;
/** Snap tolerance, below OpenLayers' 10, so that points can be placed close to a line. */
const TOLERANCE_SCREEN_PX = 6;

export class SnapTargets {
  readonly interaction: Snap;
  private readonly targets = new Collection<RoiFeature>();

  constructor(
    private readonly map: OlMap,
    private readonly source: VectorSource<RoiFeature>,
  ) {
    this.interaction = new Snap({ features: this.targets, pixelTolerance: TOLERANCE_SCREEN_PX });
  }

  /** Snap to the selected ROI and to what is near, never to thousands. */
  collect(chosen: RoiFeature | undefined): void {
    const view = this.map.getView();
    const resolution = view.getResolution() ?? 1;
    const reach = SNAP_REACH_SCREEN_PX * resolution;
    const box = chosen?.getGeometry()?.getExtent() ?? view.calculateExtent(this.map.getSize());
    const [left = 0, low = 0, right = 0, high = 0] = box;
    const margin = chosen ? reach : 0;
    const near = this.source.getFeaturesInExtent([left - margin, low - margin, right + margin, high + margin]);
    this.targets.clear();
    if (near.length <= MAX_SNAP_TARGETS) this.targets.extend(near.filter((other) => other.getId() !== chosen?.getId()));
    if (chosen) this.targets.push(chosen); // the pointer grabs the vertex itself, not a place next to it
  }

  /** Exclude the outline whose vertex is dragged, which would snap to its former position. */
  exclude(dragged: RoiFeature | undefined): void {
    if (dragged) this.targets.remove(dragged);
  }
}
