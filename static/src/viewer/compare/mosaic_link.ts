/** A video and its mosaic: the mosaic shows the outline of the frame; a click on it seeks the best frame of that place. */

import { frameColumns, mosaicOfCanvas } from "../mosaic/api";
import { showBestFrame } from "../mosaic/best_frame";
import { MosaicOverlay } from "../mosaic/overlay";
import { l0FromMap } from "../map/pixel_plane";
import { FrameStatus } from "../video/frame_status";
import type { VideoPlayer } from "../video/player";
import type { Pane } from "./pane";

/** Connect each mosaic with its video, if that is among the panes. */
export async function connectMosaics(panes: Pane[]): Promise<void> {
  const videos = panes.filter(({ player }) => player);
  if (!videos.length) return;
  for (const pane of panes.filter(({ canvas }) => canvas.kind === "mosaic")) {
    const mosaic = await mosaicOfCanvas(pane.canvas.id).catch(() => null);
    const component = mosaic?.components.find(({ canvas }) => canvas === pane.canvas.id);
    const video = videos.find(({ canvas }) => canvas.id === mosaic?.video_canvas);
    if (!mosaic || !component || !video?.player) continue;
    await connect(pane, video.player, mosaic.id, component.index);
  }
}

async function connect(pane: Pane, player: VideoPlayer, mosaic: string, component: number): Promise<void> {
  const frames = new FrameStatus(await frameColumns(mosaic));
  const overlay = new MosaicOverlay();
  pane.mapView.map.addLayer(overlay.layer);
  const outline = (): void => {
    const row = player.frame && frames.rowOf(player.frame.pts);
    const isHere = row !== null && frames.component(row) === component;
    overlay.showHead(isHere ? frames.outline(row) : null);
  };
  player.on("frame", outline);
  outline();
  pane.mapView.map.on("click", ({ coordinate }) => {
    const at = l0FromMap(coordinate);
    overlay.showMark(at);
    void showBestFrame(player, pane.notice, mosaic, component, at);
  });
}
