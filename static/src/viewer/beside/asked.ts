/** What was searched with, where that is not an ROI: its outline on the image it was taken from. */

import Feature from "ol/Feature";
import VectorLayer from "ol/layer/Vector";
import VectorSource from "ol/source/Vector";

import { API_ROOT, getJson } from "../lib/http";
import type { RoiGeometry } from "../lib/types";
import { geometryFromL0 } from "../map/pixel_plane";
import { PROPOSED } from "../rois/sketch/suggestion";
import type { Pane } from "./pane";

/** Like a proposed outline, but without the fill: tissue is compared here. */
const OUTLINE = PROPOSED.map((style) => {
  const plain = style.clone();
  plain.setFill(null);
  return plain;
});

interface Asked {
  canvas: string | null;
  geometry: RoiGeometry | null;
  frame_pts: number | null;
}

/** Draws it, and goes there unless `isPlaced`. False where it has no outline on this image. */
export async function showAsked(pane: Pane, id: string, isPlaced: boolean): Promise<boolean> {
  const asked = await getJson<Asked>(`${API_ROOT}/queries/${id}/`).catch(() => null);
  if (!asked) pane.notice.show("The query of this search no longer exists.");
  if (!asked?.geometry || asked.canvas !== pane.canvas.id) return false;
  const outline = geometryFromL0(asked.geometry);
  const source = new VectorSource<Feature>({ features: [new Feature(outline)], wrapX: false });
  const layer = new VectorLayer({ source, style: OUTLINE, className: "canvas-asked" });
  pane.mapView.map.addLayer(layer);
  pane.player?.on("frame", ({ frame }) => layer.setVisible(frame.pts === asked.frame_pts));
  if (isPlaced) return true;
  if (asked.frame_pts !== null) await pane.seek(asked.frame_pts);
  pane.fit(outline.getExtent());
  return true;
}
