/** The viewer: one for slides, stills, mosaics and videos. Builds the parts and connects them. */

import "../../css/viewer.css";

import type BaseLayer from "ol/layer/Base";
import type Projection from "ol/proj/Projection";

import { keyGroups } from "./page/bindings";
import type { KeyTargets } from "./page/bindings";
import { canvasLayers } from "./map/canvas_layer";
import { Conflicts } from "./rois/conflicts";
import { DeepLink, applyView, readLink } from "./map/deep_link";
import type { LinkTarget } from "./map/deep_link";
import { Details } from "./rois/details";
import { required } from "../dom/elements";
import { exchange } from "./rois/geojson";
import { FrameProjections } from "./mosaic/frame_projections";
import { History } from "./lib/history";
import { keySheet, listenToKeys } from "./lib/keys";
import { Labels } from "./rois/labels";
import { MapView } from "./map/map_view";
import { MiniMap } from "./mosaic/mini_map";
import { MosaicView } from "./mosaic/view";
import { Panel } from "./rois/panel";
import { boundsFromExtent, extentFromBounds, geometryFromL0, projectionOf } from "./map/pixel_plane";
import { RoiLayer } from "./rois/layer";
import type { RoiState } from "./rois/state";
import { RoiStore } from "./rois/store";
import { saveState } from "./rois/save_state";
import { SpanPicker } from "./mosaic/span";
import { timeline } from "./video/timeline";
import { Toasts } from "./lib/toasts";
import { toolbar } from "./page/toolbar";
import { Tools } from "./rois/tools";
import type { CanvasData } from "./lib/types";
import { VideoPlayer } from "./video/player";

interface Parts {
  root: HTMLElement;
  canvas: CanvasData;
  labels: Labels;
  player: VideoPlayer | null;
  history: History;
  store: RoiStore;
  layer: RoiLayer;
  mapView: MapView;
  toasts: Toasts;
  projection: Projection;
  /** Set by `connectTools` on a mosaic. */
  mosaic: MosaicView | null;
  /** Set by `connectTools` on a video. */
  miniMap: MiniMap | null;
}

function readCanvas(): CanvasData {
  const source = document.getElementById("canvas-data");
  if (!source?.textContent) throw new Error("the page lacks #canvas-data");
  return JSON.parse(source.textContent) as CanvasData;
}

/** Shows the image and the ROIs, and connects every part of the page to them. */
async function start(root: HTMLElement): Promise<void> {
  const canvas = readCanvas();
  const link = readLink();
  const projection = projectionOf(canvas);
  const toasts = new Toasts(required(root, "[data-toast]"));
  const labels = await loadLabels(canvas, toasts);
  const player = canvas.video ? await VideoPlayer.open(canvas, projection) : null;
  const image = player ? null : canvasLayers(canvas, projection, (count) => showTileErrors(root, count));
  const history = new History();
  const store = new RoiStore(canvas, history);
  const layer = new RoiLayer(store, labels);
  const layers: BaseLayer[] = player ? [player.layer] : (image?.layers ?? []);
  const mapView = new MapView(canvas, projection, required(root, "[data-map]"), [...layers, layer.layer]);
  const parts: Parts = {
    ...{ root, canvas, labels, player, history, store, layer, mapView, toasts, projection },
    mosaic: null,
    miniMap: null,
  };

  connectTools(parts);
  mapView.addReadouts(root);
  if (!player) mapView.addOverview(required(root, "[data-overview]"));
  root.querySelector("[data-tile-retry]")?.addEventListener("click", () => {
    image?.retry();
    showTileErrors(root, 0);
  });
  if (player) startVideo(parts, player);
  const isPlaced = applyView(mapView, link);
  if (player) await player.seek(link.t === null ? 0 : player.frames.nearest(link.t));
  const deepLink = connectLink(parts);
  mapView.map.on("moveend", () => loadWindow(parts));
  const beside = loadMosaics(parts, link, deepLink);
  await store.load();
  loadWindow(parts);
  await openLinked(parts, link, isPlaced);
  await beside;
  root.dataset.ready = "true";
}

/** Of a mosaic what its frames were; of a video the mosaics there are. */
async function loadMosaics({ canvas, mosaic, miniMap }: Parts, link: LinkTarget, deepLink: DeepLink): Promise<void> {
  await mosaic?.load(link, () => deepLink.update());
  if (canvas.video) await miniMap?.load(canvas.video);
}

async function loadLabels(canvas: CanvasData, toasts: Toasts): Promise<Labels> {
  try {
    return await Labels.load(canvas.id);
  } catch {
    toasts.show("The labels could not be loaded. Reload the page to choose labels.");
    return Labels.none();
  }
}

/** Tools, keys, rail, panel, details, dialogs: what changes ROIs. */
function connectTools(parts: Parts): void {
  const { root, canvas, labels, player, history, store, layer, mapView, toasts } = parts;
  let nextLabel: string | null = null;
  const context = {
    label: () => nextLabel,
    color: () => labels.colorOf(nextLabel),
    frame: () => player?.frame ?? null,
  };
  const tools = new Tools(mapView.map, store, layer, context, canvas.can_annotate);
  const tell = (verb: string, label: string | null): void => {
    if (label) toasts.show(`${verb}: ${label}`);
  };
  const undo = (): void => {
    if (!tools.removeLastPoint()) tell("Undone", history.undo());
  };
  const redo = (): void => tell("Redone", history.redo());
  const remove = (): void => {
    if (tools.deleteSelected()) toasts.show("ROI deleted.", { label: "Undo", run: undo });
  };
  const goTo = (state: RoiState): void => void showRoi(state, parts);
  const useLabel = (id: string | null): void => void (nextLabel = id);
  const { can_annotate: canAnnotate } = canvas;
  const details = new Details(root, store, layer, labels, { canAnnotate, zoomTo: goTo, remove, useLabel });
  const setLabel = (id: string | null): void => {
    details.setLabel(id);
    tell("Label", labels.nameOf(id));
  };
  let openSheet = (): void => undefined;
  parts.mosaic = canvas.kind === "mosaic" ? new MosaicView({ ...parts, tools }) : null;
  parts.miniMap = player ? new MiniMap(root, player, toasts) : null;
  if (player && parts.miniMap) new FrameProjections(player, parts.miniMap, { ...parts, tools });
  const span = player && canvas.video ? new SpanPicker(root, player, canvas.video, toasts) : null;
  const own = { mosaicKeys: parts.mosaic?.keys() ?? null, span, miniMap: parts.miniMap };
  const shared = { canAnnotate, tools, layer, mapView, history, labels, player, undo, redo, remove, setLabel };
  const targets: KeyTargets = { ...shared, ...own, openSheet: () => openSheet() };
  const groups = keyGroups(targets);
  openSheet = keySheet(root, groups);
  listenToKeys(groups);
  toolbar(root, targets);
  tools.use("move");
  tools.on("tool", (tool) => {
    if (tool !== "move" && tool !== "frames") void player?.pause(); // an ROI belongs to an exact frame
  });
  tools.on("notice", (text) => toasts.show(text));
  store.on("noted", (notes) => toasts.show(`Saved; the outline was ${notes.join(", ")}.`));
  const conflicts = new Conflicts(root, store, labels);
  saveState(root, store.sync, () => conflicts.open());
  new Panel(root, store, layer, labels, goTo);
  exchange(root, canvas, store, toasts);
}

function connectLink({ mapView, layer, player, mosaic }: Parts): DeepLink {
  const pts = (): number | null => player?.frame?.pts ?? mosaic?.pts ?? null;
  const deepLink = new DeepLink(mapView, () => layer.selectedId, pts);
  layer.on("select", () => deepLink.update());
  player?.on("frame", ({ exact }) => {
    if (exact) deepLink.update();
  });
  return deepLink;
}

function loadWindow({ store, mapView: { view } }: Parts): void {
  void store.loadWindow(boundsFromExtent(view.calculateExtent()), view.getResolution() ?? 1);
}

async function openLinked(parts: Parts, link: LinkTarget, isPlaced: boolean): Promise<void> {
  const { store, layer, player, toasts } = parts;
  if (!link.roi) return;
  if (!store.get(link.roi)) await store.fetchOne(link.roi);
  const state = store.get(link.roi);
  if (!state || state.deleted) toasts.show("The ROI of this link is not here any more.");
  else if (isPlaced && (link.t !== null || !player)) layer.select(state.id);
  else await showRoi(state, parts);
}

async function showRoi(state: RoiState, { mapView, layer, player }: Parts): Promise<void> {
  if (player && state.frame && player.frame?.pts !== state.frame.pts) {
    await player.seek(player.frames.nearest(state.frame.pts));
  }
  if (!layer.layer.getVisible()) layer.toggle("visible");
  layer.select(state.id);
  mapView.zoomTo(state.server ? extentFromBounds(state.server.bounds) : geometryFromL0(state.geometry).getExtent());
}

function startVideo({ root, store, layer, labels, toasts, miniMap }: Parts, player: VideoPlayer): void {
  const bar = timeline(root, player, store, labels);
  miniMap?.on("fates", ({ fates }) => bar.showFates(fates));
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
