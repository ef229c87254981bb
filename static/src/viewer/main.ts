/** The viewer: one for slides, stills, mosaics and videos. Builds the parts and connects them. */

import "../../css/viewer.css";

import type BaseLayer from "ol/layer/Base";

import { keyGroups } from "./bindings";
import type { KeyTargets } from "./bindings";
import { canvasLayers } from "./canvas_layer";
import { Conflicts } from "./conflict";
import { DeepLink, applyView, readLink } from "./deep_link";
import { Details } from "./details";
import { required } from "./dom";
import { exchange } from "./exchange";
import { History } from "./history";
import { keySheet, listenToKeys } from "./keys";
import { Labels } from "./labels";
import { MapView } from "./map_view";
import { Panel } from "./panel";
import { boundsFromExtent, extentFromBounds, geometryFromL0, projectionOf } from "./pixel_plane";
import { RoiLayer } from "./roi_layer";
import type { RoiState } from "./roi_state";
import { RoiStore } from "./rois";
import { saveState } from "./save_state";
import { timeline } from "./timeline";
import { Toasts } from "./toast";
import { toolbar } from "./toolbar";
import { Tools } from "./tools";
import type { CanvasData } from "./types";
import { VideoPlayer } from "./video";

function readCanvas(): CanvasData {
  const source = document.getElementById("canvas-data");
  if (!source?.textContent) throw new Error("the page lacks #canvas-data");
  return JSON.parse(source.textContent) as CanvasData;
}

async function start(root: HTMLElement): Promise<void> {
  const canvas = readCanvas();
  const link = readLink();
  const projection = projectionOf(canvas);
  const toasts = new Toasts(required(root, "[data-toast]"));
  const labels = await Labels.load(canvas.id).catch(() => {
    toasts.show("The labels could not be loaded. Reload the page to choose labels.");
    return Labels.none();
  });
  const player = canvas.video ? await VideoPlayer.open(canvas, projection) : null;
  const image = player ? null : canvasLayers(canvas, projection, (count) => showTileErrors(root, count));
  const history = new History();
  const store = new RoiStore(canvas, history);
  const layer = new RoiLayer(store, labels);
  const layers: BaseLayer[] = player ? [player.layer] : (image?.layers ?? []);
  const mapView = new MapView(canvas, projection, required(root, "[data-map]"), [...layers, layer.layer]);

  let nextLabel: string | null = null;
  const tools = new Tools(
    mapView.map,
    store,
    layer,
    {
      label: () => nextLabel,
      color: () => labels.colorOf(nextLabel),
      frame: () => player?.frame ?? null,
    },
    canvas.can_annotate,
  );
  store.on("noted", (notes) => toasts.show(`Saved; the outline was ${notes.join(", ")}.`));
  const goTo = (state: RoiState): void => void showRoi(state, mapView, layer, player);
  const remove = (): void => {
    if (tools.deleteSelected()) toasts.show("Region deleted.", { label: "Undo", run: undo });
  };
  const undo = (): void => {
    if (tools.removeLastPoint()) return;
    const label = history.undo();
    if (label) toasts.show(`Undone: ${label}`);
  };
  const redo = (): void => {
    const label = history.redo();
    if (label) toasts.show(`Redone: ${label}`);
  };
  const details = new Details(root, store, layer, labels, {
    canAnnotate: canvas.can_annotate,
    zoomTo: goTo,
    remove,
    useLabel: (id) => (nextLabel = id),
  });
  const conflicts = new Conflicts(root, store, labels);
  saveState(root, store.sync, () => conflicts.open());
  new Panel(root, store, layer, labels, goTo);
  exchange(root, canvas, store, toasts);

  let openSheet = (): void => undefined;
  const targets: KeyTargets = {
    canAnnotate: canvas.can_annotate,
    tools,
    layer,
    mapView,
    history,
    labels,
    player,
    undo,
    redo,
    remove,
    setLabel: (id) => {
      details.setLabel(id);
      toasts.show(`Label: ${labels.nameOf(id)}`);
    },
    openSheet: () => openSheet(),
  };
  const groups = keyGroups(targets);
  openSheet = keySheet(root, groups);
  listenToKeys(groups);
  toolbar(root, targets);
  tools.use("move");
  tools.on("notice", (text) => toasts.show(text));

  mapView.addReadouts(root);
  if (!player) mapView.addOverview(required(root, "[data-overview]"));
  root.querySelector("[data-tile-retry]")?.addEventListener("click", () => {
    image?.retry();
    showTileErrors(root, 0);
  });
  if (player) startVideo(root, player, store, layer, labels, toasts);
  const isPlaced = applyView(mapView, link);
  if (player) await player.seek(link.t === null ? 0 : player.frames.nearest(link.t));

  const deepLink = new DeepLink(mapView, () => layer.selectedId, () => player?.frame?.pts ?? null);
  layer.on("select", () => deepLink.update());
  player?.on("frame", ({ exact }) => exact && deepLink.update());
  mapView.map.on("moveend", () => {
    const bounds = boundsFromExtent(mapView.view.calculateExtent());
    void store.loadWindow(bounds, mapView.view.getResolution() ?? 1);
  });
  await store.load();
  if (store.isWindowed) mapView.map.dispatchEvent("moveend");
  await openLinked(link.roi, isPlaced, link.t !== null);

  async function openLinked(id: string | null, placed: boolean, timed: boolean): Promise<void> {
    if (id && !store.get(id)) await store.fetchOne(id);
    const state = store.get(id);
    if (!state || state.deleted) {
      if (id) toasts.show("The region of this link is not here any more.");
      return;
    }
    if (placed && (timed || !player)) layer.select(state.id);
    else goTo(state);
  }
  root.dataset.ready = "true";
}

async function showRoi(
  state: RoiState,
  mapView: MapView,
  layer: RoiLayer,
  player: VideoPlayer | null,
): Promise<void> {
  if (player && state.frame && player.frame?.pts !== state.frame.pts) {
    await player.seek(player.frames.nearest(state.frame.pts));
  }
  if (!layer.layer.getVisible()) layer.toggle("visible");
  layer.select(state.id);
  mapView.zoomTo(state.server ? extentFromBounds(state.server.bounds) : geometryFromL0(state.geometry).getExtent());
}

function startVideo(
  root: HTMLElement,
  player: VideoPlayer,
  store: RoiStore,
  layer: RoiLayer,
  labels: Labels,
  toasts: Toasts,
): void {
  timeline(root, player, store, labels);
  player.on("error", (text) => toasts.show(text));
  player.on("frame", ({ frame }) => {
    const selected = store.get(layer.selectedId);
    if (selected?.frame && selected.frame.pts !== frame.pts) layer.select(null);
    layer.setFilter((state) => state.frame === null || state.frame.pts === frame.pts);
  });
}

function showTileErrors(root: HTMLElement, count: number): void {
  const host = required(root, "[data-tile-errors]");
  host.hidden = count === 0;
  required(host, "span").textContent = `${count} ${count === 1 ? "tile" : "tiles"} could not be loaded`;
}

function showFailure(root: HTMLElement, error: unknown): void {
  console.error(error);
  const host = required(root, "[data-failure]");
  required(host, "p").textContent = error instanceof Error ? error.message : "Unknown error";
  host.hidden = false;
}

const root = document.querySelector<HTMLElement>("[data-viewer]");
if (root) void start(root).catch((error: unknown) => showFailure(root, error));
