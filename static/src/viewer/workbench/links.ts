/** Addresses: the view, the ROI and the frame that a link names, and the address of what is on screen. */

import { writeCompareLink } from "../compare/address";
import { DeepLink } from "../map/deep_link";
import type { LinkTarget } from "../map/deep_link";
import { extentFromBounds, geometryFromL0 } from "../map/pixel_plane";
import type { RoiState } from "../rois/store/roi_state";
import type { Parts } from "./parts";

export function connectLink({ root, canvas, mapView, layer, player, mosaic, leaving }: Parts): DeepLink {
  const pts = (): number | null => player?.frame?.pts ?? mosaic?.pts ?? null;
  const deepLink = new DeepLink(mapView, () => layer.selectedId, pts, leaving);
  const compare = root.querySelector<HTMLAnchorElement>("[data-compare-link]");
  compare?.addEventListener("click", () => {
    compare.href = writeCompareLink({ canvases: [canvas.id], views: [deepLink.target()], isSynced: null, query: null });
  });
  layer.on("select", () => deepLink.update());
  player?.on("frame", ({ exact }) => {
    if (exact) deepLink.update();
  });
  return deepLink;
}

export async function openLinked(parts: Parts, link: LinkTarget, isPlaced: boolean): Promise<void> {
  const { store, layer, player, notice } = parts;
  if (!link.roi) return;
  if (!store.get(link.roi)) await store.fetchOne(link.roi);
  const state = store.get(link.roi);
  if (!state || state.deleted) notice.show("The region of this link no longer exists.");
  else if (isPlaced && (link.t !== null || !player)) layer.select(state.id);
  else await showRoi(state, parts);
}

/** Show an ROI that was chosen by hand; Shift+B goes back. */
export function jumpToRoi(state: RoiState, parts: Parts): void {
  parts.jumps.record();
  void showRoi(state, parts);
}

async function showRoi(state: RoiState, { mapView, layer, player }: Parts): Promise<void> {
  if (player && state.frame && !(state.track.length && state.isInView) && player.frame?.pts !== state.frame.pts) {
    await player.seek(player.frames.nearest(state.frame.pts));
  }
  if (!layer.layer.getVisible()) layer.toggle("visible");
  layer.select(state.id);
  const isOwn = state.server && !state.keyFrameAt;
  mapView.zoomTo(isOwn && state.server ? extentFromBounds(state.server.bounds) : geometryFromL0(state.geometry).getExtent());
}
