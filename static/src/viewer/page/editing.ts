/** Tools, keys, rail, list, details and dialogs, connected to the ROIs. */

import { connectDisplayRange } from "../about/display_range";
import { connectPixelSize } from "../about/pixel_size";
import { connectStain } from "../about/stain";
import { keySheet, listenToKeys } from "../lib/keys";
import { RoiCommands } from "../rois/tools/commands";
import { Details } from "../rois/panel/details";
import { connectExports, connectImport } from "./exchange";
import { UNLABELLED_COLOR } from "../rois/saved/labels";
import { NextLabel } from "../rois/panel/next_label";
import { Review } from "../rois/panel/review";
import { RoiList } from "../rois/panel/list";
import { Tools } from "../rois/tools/tools";
import { FrameProjections } from "../mosaic/frame_projections";
import { MiniMap } from "../mosaic/mini_map";
import { SpanPicker } from "../mosaic/span";
import { MosaicView } from "../mosaic/view";
import { Tracks } from "../video/tracks";
import { keyGroups } from "./bindings";
import type { KeyTargets } from "./bindings";
import { showRoi } from "./links";
import { connectOpenOutlines } from "./open_outlines";
import { connectSelection } from "./selection";
import { connectSimilarPlaces } from "./similar_places";
import { NO_SUGGESTIONS, connectSuggestions } from "./suggestions";
import { LookPanel } from "./look_panel";
import type { Parts } from "./parts";
import { connectSaving } from "./saving";
import { connectSearch } from "./search_here";
import { toolbar } from "./toolbar";

type Commands = Pick<KeyTargets, "undo" | "redo" | "remove" | "setLabel" | "selected" | "suggested" | "similar">;

/** Makes what changes ROIs, and what a mosaic or a video has in addition. */
export function connectTools(parts: Parts): void {
  const { root, canvas, labels, player, store, edits, layer, mapView, notice } = parts;
  const next = canvas.can_annotate ? new NextLabel(root, labels) : null;
  const context = {
    label: () => next?.id ?? null,
    color: () => next?.color ?? UNLABELLED_COLOR,
    frame: () => player?.frame ?? null,
    mpp: canvas.mpp_x && canvas.mpp_y ? ([canvas.mpp_x, canvas.mpp_y] as [number, number]) : null,
  };
  const tools = new Tools(mapView.map, store, edits, layer, context, canvas.can_annotate);
  const selected = new RoiCommands(layer, edits, labels, {
    frame: context.frame,
    resolution: () => mapView.view.getResolution() ?? 1,
    isWindowed: () => store.isWindowed,
    tell: (text) => notice.show(text),
  });
  const commands = undoable(parts, tools, selected);
  const details = new Details(root, store, edits, layer, labels, {
    canAnnotate: canvas.can_annotate,
    propertyTypes: parts.propertyTypes,
    zoomTo: (state) => void showRoi(state, parts),
    remove: commands.remove,
    useLabel: (id) => next?.use(id),
  });
  const review = root.querySelector<HTMLElement>("[data-roi-review]");
  if (review) new Review(review, store, layer, (text) => notice.show(text));
  const setLabel = (id: string | null): void => {
    details.setLabel(id);
    if (layer.chosen.size > 1) selected.relabel(id);
    else notice.show(`Label: ${labels.nameOf(id)}`);
  };
  connectSelection(parts, tools, selected, { ...commands, setLabel });
  const suggested = canvas.can_annotate ? connectSuggestions(parts, tools, context) : NO_SUGGESTIONS;
  connectKeys(parts, tools, { ...commands, setLabel, selected, suggested, similar: connectSimilarPlaces(parts, tools) });
  tools.use("move");
  tools.on("tool", (tool) => {
    if (tool !== "move" && tool !== "frames") void player?.pause(); // an ROI belongs to an exact frame
  });
  tools.on("notice", (text) => notice.show(text));
  if (canvas.can_annotate) void connectOpenOutlines(parts, tools).load();
  store.on("noted", (notes) => notice.show(`Saved; the outline was ${notes.join(", ")}.`));
  connectSaving(parts);
  connectSearch(parts, tools);
  new RoiList(root, store, layer, labels, (state) => void showRoi(state, parts));
  connectImport(parts);
  connectPixelSize(root, canvas, () => tools.rulerPx());
  connectDisplayRange(root, canvas);
  connectStain(root);
  connectExports(parts);
}

/** Undo, redo and delete; each says what it did. */
function undoable(
  { history, notice }: Parts,
  tools: Tools,
  selected: RoiCommands,
): Pick<Commands, "undo" | "redo" | "remove"> {
  const tell = (verb: string, label: string | null): void => {
    if (label) notice.show(`${verb}: ${label}`);
  };
  const undo = (): void => {
    if (!tools.removeLastPoint()) tell("Undone", history.undo());
  };
  const redo = (): void => tell("Redone", history.redo());
  const remove = (): void => {
    const removed = selected.remove();
    const text = removed === 1 ? "ROI deleted." : `${removed} ROIs deleted.`;
    if (removed) notice.show(text, { label: "Undo", run: undo });
  };
  return { undo, redo, remove };
}

/** The mosaic's own parts, and one table of keys for the listener, the sheet and the rail. */
function connectKeys(parts: Parts, tools: Tools, commands: Commands): void {
  const { root, canvas, player, history, labels, layer, mapView, notice } = parts;
  parts.mosaic = canvas.kind === "mosaic" ? new MosaicView({ ...parts, tools }) : null;
  parts.miniMap = player ? new MiniMap(root, player, notice) : null;
  if (player && parts.miniMap) new FrameProjections(player, parts.miniMap, { ...parts, tools });
  const span = player && canvas.video ? new SpanPicker(root, player, canvas.video, notice) : null;
  const look = new LookPanel(root, {
    giveFocus: () => mapView.target.focus({ preventScroll: true }),
    showRaw: (isRaw) => parts.image?.showRaw(isRaw),
  });
  let openSheet = (): void => undefined;
  const targets: KeyTargets = {
    ...{ canAnnotate: canvas.can_annotate, tools, layer, mapView, history, labels, player, ...commands },
    ...{ mosaicKeys: parts.mosaic?.keys() ?? null, span, miniMap: parts.miniMap, tracks: player && new Tracks(parts, player) },
    openSheet: () => openSheet(),
    look: () => look.toggle(),
  };
  const groups = keyGroups(targets);
  openSheet = keySheet(root, groups);
  listenToKeys(groups);
  toolbar(root, targets);
}
