/** Builds the parts of the page from the data in it, and connects them. */

import type Projection from "ol/proj/Projection";

import { required } from "../../dom/elements";
import { History } from "../lib/history";
import { actFor } from "../lib/http";
import { DraftStorage } from "../lib/draft_storage";
import { SaveQueues } from "../lib/saving/autosave";
import { Drafts } from "../lib/saving/drafts";
import { debounced } from "../lib/scheduling";
import { StageNotice } from "../lib/stage_notice";
import type { CanvasData } from "../lib/types";
import { canvasLayers } from "../map/tile_layers";
import type { CanvasLayers } from "../map/tile_layers";
import { applyView, readLink } from "../map/deep_link";
import type { DeepLink, LinkTarget } from "../map/deep_link";
import { MapView } from "../map/map_view";
import { boundsFromExtent, projectionOf } from "../map/pixel_plane";
import { readouts } from "../map/readouts";
import { RoiEdits } from "../rois/store/edits";
import { Labels } from "../rois/store/labels";
import { RoiLayer } from "../rois/rendering/roi_layer";
import { readLabelDisplay, writeLabelDisplay } from "../rois/store/label_display";
import { propertyTypes } from "../rois/store/property_types";
import type { StoredEdit } from "../rois/store/roi_state";
import { RoiStore } from "../rois/store/roi_store";
import { VideoEventEdits, VideoEventStore } from "../video/events/event_store";
import type { StoredEvent } from "../video/events/event_state";
import { VideoPlayer } from "../video/player";
import { timeline } from "../video/timeline";
import { connectTools } from "./connect_tools";
import { connectLink, openLinked } from "./links";
import { connectCollaborators } from "./collaborators";
import { Jumps } from "./jumps";
import type { ImageKeys } from "./key_bindings";
import type { Parts, VideoEvents } from "./parts";

/** A pause shorter than this counts as the same turn of the wheel. */
const WINDOW_PAUSE_MS = 150;

function readCanvas(): CanvasData {
  const source = document.getElementById("canvas-data");
  if (!source?.textContent) throw new Error("the page lacks #canvas-data");
  return JSON.parse(source.textContent) as CanvasData;
}

/** Shows the image and the ROIs, and connects every part of the page to them. Throws if the image is left before. */
export async function start(parts: Parts, images: ImageKeys): Promise<void> {
  const link = readLink(location.search);
  const { root, mapView, player, store, leaving } = parts;
  connectTools(parts, images);
  readouts(root, mapView, parts.canvas);
  if (player) startVideo(parts, player);
  else mapView.addOverview(required(root, "[data-overview]"));
  const isPlaced = applyView(mapView, link);
  if (player) await player.seek(link.t === null ? 0 : player.frames.nearest(link.t));
  leaving.throwIfAborted();
  const deepLink = connectLink(parts);
  const loadSoon = debounced(() => loadWindow(parts), WINDOW_PAUSE_MS);
  mapView.map.on("moveend", loadSoon);
  const mosaics = loadMosaics(parts, link, deepLink);
  await parts.drafts.replay(); // before the ROIs are read, so that unsaved changes are applied to them
  await parts.events?.drafts.replay();
  await store.load();
  leaving.throwIfAborted();
  loadWindow(parts);
  await openLinked(parts, link, isPlaced);
  await Promise.all([mosaics, parts.eventPanel?.load()]);
  leaving.throwIfAborted();
  connectCollaborators(parts);
  focusMap(mapView.target);
  root.dataset.ready = "true";
}

/** The arrow keys move the image from the start, unless the user is elsewhere already. */
function focusMap(target: HTMLElement): void {
  if (document.activeElement !== document.body) return;
  target.toggleAttribute("data-pointed", true); // no focus ring before the keyboard is used
  target.focus({ preventScroll: true });
}

/** Create the parts of the page of an image; they end when `leaving` is aborted. */
export async function makeParts(root: HTMLElement, leaving: AbortSignal): Promise<Parts> {
  const canvas = readCanvas();
  const projection = projectionOf(canvas);
  const notice = new StageNotice(required(root, "[data-stage-notice]"));
  const [labels, types] = await Promise.all([loadLabels(canvas, notice), propertyTypes(canvas.id)]);
  const player = canvas.video ? await VideoPlayer.open(canvas, projection) : null;
  leaving.throwIfAborted();
  const image = player ? null : tiles(root, canvas, projection, leaving);
  const history = new History();
  const user = root.dataset.user ?? "";
  actFor(user);
  labels.setDisplay(readLabelDisplay(user));
  labels.on("display", (display) => writeLabelDisplay(user, display));
  const draftStorage = new DraftStorage(user, canvas.id);
  const store = new RoiStore(canvas, leaving);
  const drafts = new Drafts(store, draftStorage.shelf<StoredEdit>("edit"));
  const events = player ? makeEvents(canvas, history, draftStorage, leaving) : null;
  const saving = new SaveQueues(events ? [store.sync, events.store.sync] : [store.sync]);
  const edits = new RoiEdits(store, history);
  const layer = new RoiLayer(store, labels);
  const mapView = new MapView(canvas, projection, required(root, "[data-map]"), [...(player ? [player.layer] : (image?.layers ?? [])), layer.layer]);
  const jumps = new Jumps(mapView, layer, player);
  leaving.addEventListener("abort", () => {
    player?.close();
    mapView.close();
    void saving.idle().then(() => draftStorage.release());
  });
  const parts = { root, leaving, canvas, labels, propertyTypes: types, player, image, history, draftStorage, drafts, store, edits, events, saving, layer, mapView, notice, projection, jumps };
  return { ...parts, mosaic: null, miniMap: null, eventPanel: null };
}

function makeEvents(canvas: CanvasData, history: History, storage: DraftStorage, leaving: AbortSignal): VideoEvents {
  const store = new VideoEventStore(canvas.id, leaving);
  return { store, edits: new VideoEventEdits(store, history), drafts: new Drafts(store, storage.shelf<StoredEvent>("event")) };
}

/** The image of a canvas that is not a video; says how many tiles are missing. */
function tiles(root: HTMLElement, canvas: CanvasData, projection: Projection, leaving: AbortSignal): CanvasLayers {
  const image = canvasLayers(canvas, projection, (count) => showTileErrors(root, count), leaving);
  root.querySelector("[data-tile-retry]")?.addEventListener("click", () => image.retry());
  return image;
}

async function loadLabels(canvas: CanvasData, notice: StageNotice): Promise<Labels> {
  try {
    return await Labels.load(canvas.id);
  } catch {
    notice.show("The labels could not be loaded. Reload the page to choose labels.");
    return Labels.empty();
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

function startVideo({ root, store, layer, labels, notice, miniMap, leaving }: Parts, player: VideoPlayer): void {
  const bar = timeline(root, player, store, labels, leaving);
  miniMap?.on("frameStatus", ({ frameStatus }) => bar.showFrameStatus(frameStatus));
  player.on("error", (text) => notice.show(text));
  player.on("frame", ({ frame }) => {
    const moved = store.existingObjects().filter((state) => state.view(frame) && state.track.length);
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
  required(host, "span").textContent = `${count === 1 ? "1 tile is" : `${count} tiles are`} missing. Loading is tried again until the server answers.`;
}
