/** The outline of a search query that is not an ROI, on the image it was drawn on. */

import Feature from "ol/Feature";
import VectorLayer from "ol/layer/Vector";
import VectorSource from "ol/source/Vector";

import type { Schemas } from "../../api/schemas";
import { API_ROOT, getJson } from "../lib/http";
import { geometryFromL0 } from "../map/pixel_plane";
import { PROPOSAL_STYLE } from "../rois/drawing/suggestion";
import type { Pane } from "./pane";

/** A proposed outline without its fill, which would tint the tissue to compare. */
const OUTLINE = PROPOSAL_STYLE.map((style) => {
  const plain = style.clone();
  plain.setFill(null);
  return plain;
});

/** Draw the query, and zoom to it unless `isPlaced`. Returns false if it has no outline on this image. */
export async function showQueryOutline(pane: Pane, id: string, isPlaced: boolean): Promise<boolean> {
  const query = await getJson<Schemas["Query"]>(`${API_ROOT}/queries/${id}/`).catch(() => null);
  if (!query) pane.notice.show("The query of this search no longer exists.");
  if (!query?.geometry || query.canvas !== pane.canvas.id) return false;
  const outline = geometryFromL0(query.geometry);
  const source = new VectorSource<Feature>({ features: [new Feature(outline)], wrapX: false });
  const layer = new VectorLayer({ source, style: OUTLINE, className: "canvas-query" });
  pane.mapView.map.addLayer(layer);
  pane.player?.on("frame", ({ frame }) => layer.setVisible(frame.pts === query.frame_pts));
  if (isPlaced) return true;
  if (query.frame_pts !== null) await pane.seek(query.frame_pts);
  pane.fit(outline.getExtent());
  return true;
}
