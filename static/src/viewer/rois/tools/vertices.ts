/** Vertices of the selected ROI are dragged; on an edge a new one is made, with Alt one is removed. */

import type Collection from "ol/Collection";
import { altKeyOnly, primaryAction, singleClick } from "ol/events/condition";
import Modify from "ol/interaction/Modify";

import { sketchStyle } from "../shown/style";
import type { RoiFeature } from "../shown/layer";

/** How near the pointer has to be to a vertex or an edge. */
const TOLERANCE_SCREEN_PX = 8;

export function modifyInteraction(features: Collection<RoiFeature>, isPanning: () => boolean): Modify {
  return new Modify({
    features,
    pixelTolerance: TOLERANCE_SCREEN_PX,
    condition: (event) => !isPanning() && primaryAction(event) && !event.originalEvent.shiftKey,
    deleteCondition: (event) => altKeyOnly(event) && singleClick(event),
    style: sketchStyle("#ffffff"),
  });
}
