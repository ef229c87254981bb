/** A box: what it touches is selected (Shift adds to the selection), or it is searched with. */

import DragBox from "ol/interaction/DragBox";
import { primaryAction } from "ol/events/condition";

import type { Extent } from "ol/extent";
import type { RoiLayer } from "../rendering/roi_layer";

function newBox(isPanning: () => boolean): DragBox {
  return new DragBox({
    className: "select-box",
    condition: (event) => !isPanning() && primaryAction(event),
  });
}

export function searchBoxInteraction(isPanning: () => boolean, onBox: (extent: Extent) => void): DragBox {
  const box = newBox(isPanning);
  box.on("boxend", () => onBox(box.getGeometry().getExtent()));
  return box;
}

export function boxSelect(layer: RoiLayer, isPanning: () => boolean): DragBox {
  const box = newBox(isPanning);
  box.on("boxend", (event) => {
    const [area, translated] = [box.getGeometry(), event.mapBrowserEvent];
    if (!translated) return;
    const isTurned = translated.map.getView().getRotation() !== 0;
    const inside: string[] = [];
    layer.source.forEachFeatureIntersectingExtent(area.getExtent(), (feature) => {
      const at = feature.getGeometry()?.getClosestPoint(middle(area.getExtent()));
      if (!isTurned || (at && area.intersectsCoordinate(at))) inside.push(String(feature.getId()));
    });
    const before = translated.originalEvent.shiftKey ? [...layer.selectedIds] : [];
    layer.selectMany([...before, ...inside]);
  });
  return box;
}

const middle = ([left = 0, low = 0, right = 0, high = 0]: number[]): number[] => [(left + right) / 2, (low + high) / 2];
