/** Tools, keys, rail, list, details and dialogs, connected to the ROIs. */

import { required } from "../../dom/elements";
import { connectDisplayRange } from "../image_properties/display_range";
import { connectModality } from "../image_properties/modality";
import { connectPixelSize } from "../image_properties/pixel_size";
import { connectQuantification } from "./quantification";
import { connectStain } from "../image_properties/stain";
import { keySheet, listenToKeys } from "../lib/key_bindings";
import { PanelTabs } from "../lib/panel_tabs";
import { RoiCommands } from "../rois/tools/commands";
import { Details } from "../rois/panel/roi_details";
import { connectExports, connectImport } from "./import_export";
import { UNLABELLED_COLOR } from "../rois/store/labels";
import { NextLabel } from "../rois/panel/next_label";
import { LabelPanel } from "../rois/panel/label_panel";
import { Review } from "../rois/panel/review";
import { RoiList } from "../rois/panel/roi_list";
import { Tools } from "../rois/tools/tools";
import { FrameProjections } from "../mosaic/frame_projections";
import { MiniMap } from "../mosaic/mini_map";
import { SpanPicker } from "../mosaic/span_picker";
import { MosaicView } from "../mosaic/mosaic_view";
import { VideoEventPanel } from "../video/events/event_panel";
import type { VideoPlayer } from "../video/player";
import { Tracks } from "../video/tracks";
import { keyGroups } from "./key_bindings";
import type { ImageKeys, KeyTargets } from "./key_bindings";
import { jumpToRoi } from "./links";
import { connectUnfinishedOutlines } from "./unfinished_outlines";
import { connectSelection } from "./selection";
import { connectFindSimilar } from "./find_similar";
import { NO_SUGGESTIONS, connectSuggestions } from "./outline_suggestions";
import { AdjustmentsPanel } from "./adjustments_panel";
import type { Parts } from "./parts";
import { connectSaving } from "./saving";
import { connectSearch } from "./area_search";
import { connectToolHint } from "./tool_hint";
import { toolbar } from "./toolbar";
import { connectFixedSizes, fixedSizePlanner } from "./fixed_size_panel";
import { TissueMap } from "../rois/drawing/tissue_map";

type Commands = Pick<KeyTargets, "undo" | "redo" | "remove" | "setLabel" | "selected" | "suggested" | "similar" | "images">;

const UNSCALED = "The size of a pixel is unknown, so there are no objectives to step through. + and - zoom.";

/** Create the parts that change ROIs, and the additional parts of a mosaic or a video. */
export function connectTools(parts: Parts, images: ImageKeys): void {
  const { root, canvas, labels, player, store, edits, layer, mapView, notice } = parts;
  const next = canvas.can_annotate ? new NextLabel(root, labels) : null;
  const context = {
    label: () => next?.id ?? null,
    color: () => next?.color ?? UNLABELLED_COLOR,
    frame: () => player?.frame ?? null,
    mpp: canvas.mpp_x && canvas.mpp_y ? ([canvas.mpp_x, canvas.mpp_y] as [number, number]) : null,
  };
  const tissue = new TissueMap(canvas);
  const fixedSizes = fixedSizePlanner(parts, tissue);
  const tools = new Tools(mapView.map, store, edits, layer, { ...context, fixedSizes }, canvas.can_annotate, parts.leaving);
  const selected = new RoiCommands(layer, edits, labels, {
    frame: context.frame,
    resolution: () => mapView.view.getResolution() ?? 1,
    isWindowed: () => store.isWindowed,
    showNotice: (text) => notice.show(text),
    hideNotice: (text) => notice.hide(text),
  });
  const commands = undoable(parts, tools, selected);
  const details = new Details(root, store, edits, layer, labels, {
    canAnnotate: canvas.can_annotate,
    propertyTypes: parts.propertyTypes,
    zoomTo: (state) => jumpToRoi(state, parts),
    remove: commands.remove,
    useLabel: (id) => next?.use(id),
  });
  const review = root.querySelector<HTMLElement>("[data-roi-review]");
  const tabs = new PanelTabs(required(root, "[data-roi-tabs]"));
  if (review) new Review(review, root, tabs, store, layer, (text) => notice.show(text));
  connectQuantification(parts);
  const setLabel = (id: string | null): void => {
    details.setLabel(id);
    if (layer.selectedIds.size > 1) selected.relabel(id);
    else notice.show(`Label: ${labels.nameOf(id)}`);
  };
  new LabelPanel(root, labels, store, setLabel);
  connectSelection(parts, tools, selected, tabs, { ...commands, setLabel });
  const suggested = canvas.can_annotate ? connectSuggestions(parts, tools, context) : NO_SUGGESTIONS;
  connectKeys(parts, tools, { ...commands, images, setLabel, selected, suggested, similar: connectFindSimilar(parts, tools) });
  connectFixedSizes(parts, tools, fixedSizes, tissue);
  connectToolHint(root, tools);
  tools.use("move");
  tools.on("tool", (tool) => {
    if (tool !== "move" && tool !== "frames") void player?.pause(); // an ROI belongs to an exact frame
  });
  tools.on("notice", (text) => notice.show(text));
  if (canvas.can_annotate) void connectUnfinishedOutlines(parts, tools).load();
  store.on("noted", (notes) => notice.show(`Saved; the outline was ${notes.join(", ")}.`));
  connectSaving(parts);
  connectSearch(parts, tools);
  new RoiList(root, store, layer, labels, (state) => jumpToRoi(state, parts));
  connectImport(parts);
  connectPixelSize(root, canvas, () => tools.rulerPx());
  connectDisplayRange(root, canvas);
  connectModality(root, canvas, notice);
  connectStain(root);
  connectExports(parts);
}

/** Undo, redo and delete; each shows a message. */
function undoable(
  { history, notice }: Parts,
  tools: Tools,
  selected: RoiCommands,
): Pick<Commands, "undo" | "redo" | "remove"> {
  const showNotice = (verb: string, label: string | null): void => {
    if (label) notice.show(`${verb}: ${label}`);
  };
  const undo = (): void => {
    if (!tools.removeLastPoint()) showNotice("Undone", history.undo());
  };
  const redo = (): void => showNotice("Redone", history.redo());
  const remove = (): void => {
    const removed = selected.remove();
    const text = removed === 1 ? "Region deleted." : `${removed} regions deleted.`;
    if (removed) notice.show(text, { label: "Undo", run: undo });
  };
  return { undo, redo, remove };
}

/** Connect mosaic and video parts, and the key bindings. */
function connectKeys(parts: Parts, tools: Tools, commands: Commands): void {
  const { root, canvas, player, history, labels, layer, mapView, notice } = parts;
  parts.mosaic = canvas.kind === "mosaic" ? new MosaicView({ ...parts, tools }) : null;
  const tabs = player ? new PanelTabs(required(root, "[data-panel-tabs]")) : null;
  parts.miniMap = player && tabs ? new MiniMap(root, player, notice, layer, tabs) : null;
  parts.eventPanel = player && tabs ? connectEvents(parts, player, tabs, commands.undo) : null;
  if (player && parts.miniMap) new FrameProjections(player, parts.miniMap, { ...parts, tools });
  const span = player && canvas.video ? new SpanPicker(root, player, canvas.video, notice, parts.leaving) : null;
  const adjustments = new AdjustmentsPanel(root, {
    giveFocus: () => mapView.target.focus({ preventScroll: true }),
    showRaw: (isRaw) => parts.image?.showRaw(isRaw),
  });
  const setPixelSizeButton = root.querySelector<HTMLElement>("[data-pixel-size-open]");
  const setPixelSize = setPixelSizeButton ? { label: "Set it", run: () => setPixelSizeButton.click() } : undefined;
  let openSheet = (): void => undefined;
  const targets: KeyTargets = {
    ...{ canAnnotate: canvas.can_annotate, tools, layer, mapView, history, labels, player, ...commands },
    ...{ mosaicKeys: parts.mosaic?.keys() ?? null, span, miniMap: parts.miniMap, events: parts.eventPanel, tracks: player && new Tracks(parts, player) },
    openSheet: () => openSheet(),
    adjustments: () => adjustments.toggle(),
    stepObjective: (by) => mapView.stepMagnification(by) || notice.show(UNSCALED, setPixelSize),
  };
  const groups = keyGroups(targets);
  openSheet = keySheet(root, groups);
  listenToKeys(groups, parts.leaving);
  toolbar(root, targets);
}

function connectEvents({ root, leaving, canvas, events, notice }: Parts, player: VideoPlayer, tabs: PanelTabs, undo: () => void): VideoEventPanel | null {
  if (!events) return null;
  const { store, edits } = events;
  return new VideoEventPanel({ root, canAnnotate: canvas.can_annotate, canvasId: canvas.id, leaving, player, store, edits, tabs, notice, undo });
}
