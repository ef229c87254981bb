/** What each key does on this canvas: one table for the listener and for the key sheet. */

import { fullScreen } from "./full_screen";
import type { History } from "../lib/history";
import type { KeyBinding, KeyGroup } from "../lib/keys";
import type { Labels } from "../rois/labels";
import type { MapView } from "../map/map_view";
import type { MiniMap } from "../mosaic/mini_map";
import type { RoiLayer } from "../rois/layer";
import type { SpanPicker } from "../mosaic/span";
import type { Tools, ToolName } from "../rois/tools";
import type { VideoPlayer } from "../video/player";

export interface KeyTargets {
  canAnnotate: boolean;
  tools: Tools;
  layer: RoiLayer;
  mapView: MapView;
  history: History;
  labels: Labels;
  player: VideoPlayer | null;
  undo: () => void;
  redo: () => void;
  remove: () => void;
  setLabel: (id: string | null) => void;
  openSheet: () => void;
  /** The keys that only a mosaic has. */
  mosaicKeys: KeyGroup | null;
  /** On a video: the span for a new mosaic, and the small map of an existing one. */
  span: SpanPicker | null;
  miniMap: MiniMap | null;
}

export function keyGroups(targets: KeyTargets): KeyGroup[] {
  const groups = [viewKeys(targets)];
  if (targets.canAnnotate) groups.push(drawKeys(targets), labelKeys(targets));
  if (targets.player) groups.push(videoKeys(targets.player, targets));
  if (targets.mosaicKeys) groups.push(targets.mosaicKeys);
  return groups;
}

function viewKeys({ tools, layer, mapView, openSheet, player }: KeyTargets): KeyGroup {
  const pan: KeyBinding = {
    keys: ["space"],
    shown: "Space",
    does: "Hold to pan",
    run: () => tools.holdToPan(true),
    release: () => tools.holdToPan(false),
  };
  return {
    title: "View",
    bindings: [
      { keys: ["m"], shown: "M", does: "Move and select", run: () => tools.use("move") },
      ...(player ? [] : [pan]),
      { keys: ["+", "="], shown: "+", does: "Zoom in", run: () => mapView.zoomBy(2), repeats: true },
      { keys: ["-"], shown: "-", does: "Zoom out", run: () => mapView.zoomBy(0.5), repeats: true },
      { keys: ["home"], shown: "Home", does: "Fit the image", run: () => mapView.fit() },
      { keys: ["x"], shown: "X", does: "Full screen, and back", run: () => fullScreen(mapView.target) },
      { keys: [], shown: "Shift + drag", does: "Rotate" },
      { keys: ["q"], shown: "Q", does: "Turn left by 15°", run: () => mapView.rotateBy(-15), repeats: true },
      { keys: ["e"], shown: "E", does: "Turn right by 15°", run: () => mapView.rotateBy(15), repeats: true },
      { keys: ["0"], shown: "0", does: "Reset rotation", run: () => mapView.resetRotation() },
      { keys: ["a"], shown: "A", does: "Show or hide ROIs", run: () => layer.toggle("visible") },
      { keys: ["n"], shown: "N", does: "Show or hide names", run: () => layer.toggle("names") },
      { keys: ["shift+f"], shown: "Shift + F", does: "Fill ROIs", run: () => layer.toggle("filled") },
      { keys: ["escape"], shown: "Esc", does: "Cancel (Ctrl + Z brings it back), deselect", run: () => tools.cancel() },
      { keys: ["?"], shown: "?", does: "This sheet", run: openSheet },
    ],
  };
}

function drawKeys({ tools, undo, redo, remove }: KeyTargets): KeyGroup {
  const use = (tool: ToolName) => () => tools.use(tool);
  return {
    title: "Draw and edit",
    bindings: [
      { keys: ["r"], shown: "R", does: "Rectangle", run: use("rectangle") },
      { keys: ["p"], shown: "P", does: "Polygon; goes on with one left unfinished", run: use("polygon") },
      { keys: ["shift+p"], shown: "Shift + P", does: "Freehand", run: use("freehand") },
      { keys: ["enter"], shown: "Enter", does: "Finish the polygon", run: () => tools.finish() },
      { keys: [], shown: "Alt + click", does: "Remove a vertex" },
      { keys: ["delete", "backspace"], shown: "Delete", does: "Delete the ROI", run: remove },
      { keys: ["ctrl+z"], shown: "Ctrl + Z", does: "Undo", run: undo, repeats: true },
      { keys: ["ctrl+shift+z", "ctrl+y"], shown: "Ctrl + Shift + Z", does: "Redo", run: redo, repeats: true },
    ],
  };
}

function labelKeys({ labels, setLabel }: KeyTargets): KeyGroup {
  const bindings = labels.onKeys.map((label, index) => ({
    keys: [String(index + 1)],
    shown: String(index + 1),
    does: label.name,
    run: () => setLabel(label.id),
  }));
  return { title: "Labels", bindings };
}

function videoKeys(player: VideoPlayer, { span, miniMap, canAnnotate }: KeyTargets): KeyGroup {
  const spanKeys: KeyBinding[] = [
    { keys: ["i"], shown: "I", does: "A mosaic's span begins here", run: () => span?.begin() },
    { keys: ["o"], shown: "O", does: "A mosaic's span ends here", run: () => span?.end() },
  ];
  const step = (by: number) => () => void player.step(by);
  return {
    title: "Video",
    bindings: [
      { keys: ["d"], shown: "D", does: "One frame back", run: step(-1), repeats: true },
      { keys: ["f"], shown: "F", does: "One frame on", run: step(1), repeats: true },
      { keys: ["c"], shown: "C", does: "Ten frames back", run: step(-10), repeats: true },
      { keys: ["v"], shown: "V", does: "Ten frames on", run: step(10), repeats: true },
      { keys: ["space"], shown: "Space", does: "Play or pause", run: () => void player.toggle() },
      ...(canAnnotate ? spanKeys : []),
      { keys: ["g"], shown: "G", does: "Collapse the map of the mosaic", run: () => miniMap?.fold() },
    ],
  };
}
