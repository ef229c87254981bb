/**
 * Vertices of the selected ROI can be dragged; a press on the edge of an area adds one, with Alt it removes one. A line
 * is moved as a whole by a drag between its vertices.
 */

import type Collection from "ol/Collection";
import type MapBrowserEvent from "ol/MapBrowserEvent";
import { altKeyOnly, primaryAction, singleClick } from "ol/events/condition";
import LineString from "ol/geom/LineString";
import MultiLineString from "ol/geom/MultiLineString";
import Modify from "ol/interaction/Modify";

import { sketchStyle } from "../rendering/styles";
import type { RoiFeature } from "../rendering/roi_layer";

/** Hit tolerance of vertices and edges. */
const TOLERANCE_SCREEN_PX = 8;

export function modifyInteraction(features: Collection<RoiFeature>, isPanning: () => boolean): Modify {
  const style = sketchStyle("#ffffff");
  return new Modify({
    features,
    pixelTolerance: TOLERANCE_SCREEN_PX,
    condition: (event) =>
      !isPanning() && primaryAction(event) && !event.originalEvent.shiftKey && !isBetweenVertices(features.item(0), event),
    deleteCondition: (event) => altKeyOnly(event) && singleClick(event),
    style: (handle) => (isLine(features.item(0)) && !handle.get("existing") ? [] : style),
  });
}

function isLine(feature: RoiFeature | undefined): boolean {
  const geometry = feature?.getGeometry();
  return geometry instanceof LineString || geometry instanceof MultiLineString;
}

function isBetweenVertices(feature: RoiFeature | undefined, { pixel, map }: MapBrowserEvent): boolean {
  if (!feature || !isLine(feature)) return false;
  const flat = (feature.getGeometry() as LineString | MultiLineString).getFlatCoordinates();
  const [x = 0, y = 0] = pixel;
  for (let at = 0; at < flat.length; at += 2) {
    const [toX = 0, toY = 0] = map.getPixelFromCoordinate(flat.slice(at, at + 2));
    if (Math.hypot(toX - x, toY - y) <= TOLERANCE_SCREEN_PX) return false;
  }
  return true;
}
