/** Builds the parts of the page from the data in it, and connects them. */

import type Projection from "ol/proj/Projection";

import { required } from "../../dom/elements";
import { History } from "../lib/history";
import { actFor } from "../lib/http";
import { Cupboard } from "../lib/shelf";
import { afterPause } from "../lib/redraw";
import { StageNotice } from "../lib/stage_notice";
import type { CanvasData } from "../lib/types";
import { canvasLayers } from "../map/canvas_layer";
import type { CanvasLayers } from "../map/canvas_layer";
import { applyView, readLink } from "../map/deep_link";
import type { DeepLink, LinkTarget } from "../map/deep_link";
import { MapView } from "../map/map_view";
import { boundsFromExtent, projectionOf } from "../map/pixel_plane";
import { readouts } from "../map/readouts";
import { Drafts } from "../rois/saved/drafts";
import { RoiEdits } from "../rois/saved/edits";
import { Labels } from "../rois/saved/labels";
import { RoiLayer } from "../rois/shown/layer";
import { propertyTypes } from "../rois/saved/property_types";
import { RoiStore } from "../rois/saved/store";
import { VideoPlayer } from "../video/player";
import { timeline } from "../video/timeline";
import { connectTools } from "./editing";
import { connectLink, openLinked } from "./links";
import { connectPeople } from "./people";
import type { Parts } from "./parts";

/** A wheel that is being turned is not at rest yet. */
const WINDOW_PAUSE_MS = 150;

function readCanvas(): CanvasData {
  const source = document.getElementById("canvas-data");
  if (!source?.textContent) throw new Error("the page lacks #canvas-data");
  return JSON.parse(source.textContent) as CanvasData;
}

/** Shows the image and the ROIs, and connects every part of the page to them. */
export async function start(root: HTMLElement): Promise<void> {
  const link = readLink(location.search);
  const parts = await makeParts(root, readCanvas());
  const { mapView, player, store } = parts;
  connectTools(parts);
  readouts(root, mapView, parts.canvas);
  if (player) startVideo(parts, player);
  else mapView.addOverview(required(root, "[data-overview]"));
  const isPlaced = applyView(mapView, link);
  if (player) await player.seek(link.t === null ? 0 : player.frames.nearest(link.t));
  const deepLink = connectLink(parts);
  const loadSoon = afterPause(() => loadWindow(parts), WINDOW_PAUSE_MS);
  mapView.map.on("moveend", loadSoon);
  const beside = loadMosaics(parts, link, deepLink);
  await parts.drafts.replay(); // before the ROIs are read: what waits here is what the user wants
  await store.load();
  loadWindow(parts);
  await openLinked(parts, link, isPlaced);
  await beside;
  connectPeople(parts);
  takeKeys(mapView.target);
  root.dataset.ready = "true";
}

/** The arrow keys move the image from the start, unless the user is elsewhere already. */
function takeKeys(target: HTMLElement): void {
  if (document.activeElement !== document.body) return;
  target.toggleAttribute("data-pointed", true); // no focus ring before the keyboard is used
  target.focus({ preventScroll: true });
}

async function makeParts(root: HTMLElement, canvas: CanvasData): Promise<Parts> {
  const projection = projectionOf(canvas);
  const notice = new StageNotice(required(root, "[data-stage-notice]"));
  const [labels, types] = await Promise.all([loadLabels(canvas, notice), propertyTypes(canvas.id)]);
  const player = canvas.video ? await VideoPlayer.open(canvas, projection) : null;
  const image = player ? null : tiles(root, canvas, projection);
  const history = new History();
  const user = root.dataset.user ?? "";
  actFor(user);
  const cupboard = new Cupboard(user, canvas.id);
  const store = new RoiStore(canvas);
  const drafts = new Drafts(store, cupboard.shelf("edit"));
  const edits = new RoiEdits(store, history);
  const layer = new RoiLayer(store, labels);
  const mapView = new MapView(canvas, projection, required(root, "[data-map]"), [...(player ? [player.layer] : (image?.layers ?? [])), layer.layer]);
  const made = { root, canvas, labels, propertyTypes: types, player, image, history, cupboard, drafts, store, edits, layer, mapView, notice, projection };
  return { ...made, mosaic: null, miniMap: null };
}

/** The image of a canvas that is not a video; says how many tiles are missing. */
function tiles(root: HTMLElement, canvas: CanvasData, projection: Projection): CanvasLayers {
  const image = canvasLayers(canvas, projection, (count) => showTileErrors(root, count));
  root.querySelector("[data-tile-retry]")?.addEventListener("click", () => {
    image.retry();
    showTileErrors(root, 0);
  });
  return image;
}

async function loadLabels(canvas: CanvasData, notice: StageNotice): Promise<Labels> {
  try {
    return await Labels.load(canvas.id);
  } catch {
    notice.show("The labels could not be loaded. Reload the page to choose labels.");
    return Labels.none();
  }
}

/** Loads the frames of a mosaic, or the mosaics of a video. */
async function loadMosaics({ canvas, mosaic, miniMap }: Parts, link: LinkTarget, deepLink: DeepLink): Promise<void> {
  await mosaic?.load(link, () => deepLink.update());
  if (canvas.video) await miniMap?.load(canvas.video);
}

function loadWindow({ store, mapView: { view } }: Parts): void {
  void store.loadWindow(boundsFromExtent(view.calculateExtent()));
}

function startVideo({ root, store, layer, labels, notice, miniMap }: Parts, player: VideoPlayer): void {
  const bar = timeline(root, player, store, labels);
  miniMap?.on("frameStatus", ({ frameStatus }) => bar.showFrameStatus(frameStatus));
  player.on("error", (text) => notice.show(text));
  player.on("frame", ({ frame }) => {
    const moved = store.live().filter((state) => state.view(frame) && state.track.length);
    layer.setFilter("frame", (state) => {
      state.view(player.frame); // also one that was loaded after the frame was shown
      return state.isInView;
    });
    for (const state of moved) layer.refresh(state);
    const selected = store.get(layer.selectedId);
    if (selected && !selected.isInView) layer.select(null);
  });
}

function showTileErrors(root: HTMLElement, count: number): void {
  const host = required(root, "[data-tile-errors]");
  host.hidden = count === 0;
  required(host, "span").textContent = `${count} ${count === 1 ? "tile" : "tiles"} could not be loaded`;
}
