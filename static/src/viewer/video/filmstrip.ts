/** The pictures of a timeline: dim behind it, and large above the pointer. */

import { required } from "../../dom/elements";
import { trackContext } from "../lib/slider";
import { timeText } from "../lib/units";
import type { VideoPlayer } from "./player";

export function filmstrip(host: HTMLElement, player: VideoPlayer): void {
  const film = required<HTMLImageElement>(host, "[data-film]");
  const preview = required(host, "[data-preview]");
  const { filmstrip_url: url, filmstrip_count: count } = player.video;
  film.addEventListener("load", () => {
    connectPreview(host, preview, film, player);
    drawFilmstrip(film, host, count);
    new ResizeObserver(() => drawFilmstrip(film, host, count)).observe(required(host, "[role=slider]"));
  });
  film.src = url; // stays empty if it cannot be made
}

/** Draw as many evenly spaced thumbnails as fit the track. */
function drawFilmstrip(film: HTMLImageElement, host: HTMLElement, count: number): void {
  const track = required(host, "[role=slider]");
  const [width, height] = [track.clientWidth, track.clientHeight];
  const tileWidth = film.naturalWidth / count;
  const fitting = Math.min(count, Math.max(1, Math.round(width / ((tileWidth * height) / film.naturalHeight))));
  const surface = required<HTMLCanvasElement>(host, "[data-film-surface]");
  const context = trackContext(surface, track);
  if (!context) return;
  const across = surface.width / fitting;
  for (let i = 0; i < fitting; i += 1) {
    const picture = pictureAt((i + 0.5) / fitting, count);
    context.drawImage(film, picture * tileWidth, 0, tileWidth, film.naturalHeight, i * across, 0, across, surface.height);
  }
}

/** The picture of the strip at a share of the video, 0 its first frame and 1 its last. */
export function pictureAt(share: number, count: number): number {
  return Math.round(Math.min(Math.max(share, 0), 1) * (count - 1));
}

function connectPreview(host: HTMLElement, preview: HTMLElement, film: HTMLImageElement, player: VideoPlayer): void {
  const track = required(host, "[role=slider]");
  const picture = required(preview, "[data-preview-picture]");
  const { filmstrip_count: count } = player.video;
  const tileWidth = film.naturalWidth / count;
  Object.assign(picture.style, {
    width: `${tileWidth}px`,
    height: `${film.naturalHeight}px`,
    backgroundImage: `url("${film.src}")`,
  });
  track.addEventListener("pointermove", (event) => {
    const box = track.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / Math.max(box.width, 1), 0), 1);
    const frame = player.frames.at(player.frames.clamp(share * (player.frames.length - 1)));
    picture.style.backgroundPosition = `${-pictureAt(share, count) * tileWidth}px 0`;
    required(preview, "[data-preview-text]").textContent = `Frame ${frame.index + 1} · ${timeText(frame.time_s)}`;
    const inside = Math.min(Math.max(share * box.width, tileWidth / 2), Math.max(box.width - tileWidth / 2, tileWidth / 2));
    preview.style.left = `${inside}px`;
    preview.hidden = false;
  });
  track.addEventListener("pointerleave", () => (preview.hidden = true));
}
