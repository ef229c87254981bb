/** Link from a place of a mosaic to the best frame of its video. */

import type { StageNotice } from "../lib/stage_notice";
import type { Position } from "../lib/types";
import type { VideoPlayer } from "../video/player";
import { askFramesAtPoint } from "./api";

/** Show the frame that shows a place of a component best; a message says if there is none. */
export async function showBestFrame(player: VideoPlayer, notice: StageNotice, mosaic: string, component: number, at: Position): Promise<void> {
  try {
    const best = (await askFramesAtPoint(mosaic, component, at)).results[0];
    if (best) await player.seek(player.frames.nearest(best.pts));
    else notice.show("No frame saw that place.");
  } catch (error) {
    notice.show(error instanceof Error ? error.message : "The frames could not be found.");
  }
}
