/** Key bindings of the viewer, used by the listener and the key sheet. */

import { fullScreen } from "../lib/full_screen";
import type { History } from "../lib/history";
import type { KeyBinding, KeyGroup } from "../lib/key_bindings";
import type { Labels } from "../rois/store/labels";
import type { MapView } from "../map/map_view";
import type { MiniMap } from "../mosaic/mini_map";
import type { RoiCommands } from "../rois/tools/commands";
import type { RoiLayer } from "../rois/rendering/roi_layer";
import type { SpanPicker } from "../mosaic/span_picker";
import type { ToolName } from "../rois/tools/tool_names";
import type { FindSimilarActions } from "./find_similar";
import type { SuggestionActions } from "./outline_suggestions";
import type { Tools } from "../rois/tools/tools";
import type { VideoPlayer } from "../video/player";
import type { VideoEventPanel } from "../video/events/event_panel";
import type { Tracks } from "../video/tracks";

/** The other images of the case. */
export interface ImageKeys {
  /** Open the next image, or the one before. */
  step: (by: 1 | -1) => void;
  /** Open or close the tray. */
  toggleTray: () => void;
}

export interface KeyTargets {
  canAnnotate: boolean;
  images: ImageKeys;
  tools: Tools;
  layer: RoiLayer;
  mapView: MapView;
  history: History;
  labels: Labels;
  player: VideoPlayer | null;
  undo: () => void;
  redo: () => void;
  remove: () => void;
  /** Outline proposal, which takes some keys while it is shown. */
  suggested: SuggestionActions;
  /** Navigation between places similar to an ROI. */
  similar: FindSimilarActions;
  /** Commands on the selection. */
  selected: RoiCommands;
  setLabel: (id: string | null) => void;
  openSheet: () => void;
  /** The panel of colours, open or closed. */
  adjustments: () => void;
  /** Zoom to the next objective, or show why there is none. */
  stepObjective: (by: 1 | -1) => void;
  /** The keys that only a mosaic has. */
  mosaicKeys: KeyGroup | null;
  /** Parts of a video: span of a new mosaic, map of an existing one, tracks of ROIs. */
  span: SpanPicker | null;
  miniMap: MiniMap | null;
  tracks: Tracks | null;
  /** Null for other images than videos. */
  events: VideoEventPanel | null;
}

export function keyGroups(targets: KeyTargets): KeyGroup[] {
  const groups = [viewKeys(targets), imageKeys(targets)];
  groups.push(selectKeys(targets));
  if (targets.canAnnotate) groups.push(drawKeys(targets), changeKeys(targets), labelKeys(targets));
  if (targets.player) groups.push(videoKeys(targets.player, targets));
  if (targets.events && targets.canAnnotate) groups.push(eventKeys(targets.events));
  if (targets.mosaicKeys) groups.push(targets.mosaicKeys);
  if (targets.tracks) groups.push(trackKeys(targets.tracks, targets.canAnnotate));
  return groups;
}

function viewKeys({ tools, layer, mapView, openSheet, player, adjustments, stepObjective, suggested, similar }: KeyTargets): KeyGroup {
  const pan: KeyBinding = {
    keys: ["space"],
    display: "Space",
    does: "Hold to pan",
    run: () => tools.holdToPan(true),
    release: () => tools.holdToPan(false),
  };
  return {
    title: "View",
    bindings: [
      { keys: ["m"], display: "M", does: "Move and select", run: () => tools.use("move") },
      ...(player ? [] : [pan]),
      { keys: ["+", "="], display: "+", does: "Zoom in", run: () => suggested.step(1) || mapView.zoomBy(2), repeats: true },
      { keys: ["-"], display: "-", does: "Zoom out", run: () => suggested.step(-1) || mapView.zoomBy(0.5), repeats: true },
      { keys: ["z"], display: "Z", does: "To the next higher objective (1×, 2.5×, 5×, 10×, 20×, 40×)", run: () => stepObjective(1), repeats: true },
      { keys: ["shift+z"], display: "Shift + Z", does: "To the next lower objective", run: () => stepObjective(-1), repeats: true },
      { keys: ["home"], display: "Home", does: "Fit the image", run: () => mapView.fit() },
      { keys: ["x"], display: "X", does: "Full screen, and back", run: () => fullScreen(mapView.target) },
      { keys: [], display: "Middle button + drag", does: "Pan, whatever the tool" },
      { keys: [], display: "Shift + drag", does: "Rotate" },
      { keys: ["q"], display: "Q", does: "Turn left by 15°", run: () => mapView.rotateBy(-15), repeats: true },
      { keys: ["e"], display: "E", does: "Turn right by 15°", run: () => mapView.rotateBy(15), repeats: true },
      { keys: ["0"], display: "0", does: "Reset rotation", run: () => mapView.resetRotation() },
      { keys: ["shift+c"], display: "Shift + C", does: "Colours: brightness, contrast, gamma, channels, stains", run: adjustments },
      { keys: ["a"], display: "A", does: "Show or hide regions", run: () => layer.toggle("visible") },
      { keys: ["n"], display: "N", does: "Show or hide names", run: () => layer.toggle("names") },
      { keys: ["shift+f"], display: "Shift + F", does: "Fill regions", run: () => layer.toggle("filled") },
      { keys: ["escape"], display: "Esc", does: "Cancel (Ctrl + Z brings it back), deselect", run: () => suggested.dismiss() || (tools.current === "move" && similar.dismiss()) || tools.cancel() },
      { keys: ["?"], display: "?", does: "This sheet", run: openSheet },
    ],
  };
}

function imageKeys({ images }: KeyTargets): KeyGroup {
  return {
    title: "Images of the case",
    bindings: [
      { keys: ["pagedown"], display: "Page Down", does: "Next image", run: () => images.step(1) },
      { keys: ["pageup"], display: "Page Up", does: "Previous image", run: () => images.step(-1) },
      { keys: ["shift+s"], display: "Shift + S", does: "Show or hide the images of the case", run: () => images.toggleTray() },
    ],
  };
}

function selectKeys({ tools, selected, canAnnotate, similar }: KeyTargets): KeyGroup {
  const use = (tool: ToolName) => () => tools.use(tool);
  return {
    title: "Select and measure",
    bindings: [
      { keys: ["s"], display: "S", does: "Select by a box (Shift adds)", run: use("select") },
      { keys: ["h"], display: "H", does: "Search with a box; no region is made", run: use("search") },
      { keys: [], display: "Shift + click", does: "Add to the selection, or remove from it" },
      { keys: ["ctrl+a"], display: "Ctrl + A", does: "Select all that is shown", run: () => selected.selectAll() },
      { keys: ["shift+a"], display: "Shift + A", does: "Select all of the same label", run: () => selected.selectSameLabel() },
      { keys: ["shift+n"], display: "Shift + N", does: "Find similar here: the most similar place on this slide", run: () => similar.next() },
      { keys: ["shift+b"], display: "Shift + B", does: "Back to where you were before a jump", run: () => similar.back() },
      { keys: [], display: "Ctrl + C", does: "Copy" },
      { keys: canAnnotate ? ["shift+m"] : ["shift+m", "l"], display: canAnnotate ? "Shift + M" : "L", does: "Ruler: drag or two clicks", run: use("ruler") },
      { keys: ["shift+l"], display: "Shift + L", does: "Angle: three clicks, or drag a side and click", run: use("angle") },
    ],
  };
}

function drawKeys({ tools, undo, redo, suggested }: KeyTargets): KeyGroup {
  const use = (tool: ToolName) => () => tools.use(tool);
  return {
    title: "Draw",
    bindings: [
      { keys: ["r"], display: "R", does: "Rectangle", run: use("rectangle") },
      { keys: ["o"], display: "O", does: "Ellipse", run: use("ellipse") },
      { keys: ["p"], display: "P", does: "Polygon; continues one left unfinished", run: use("polygon") },
      { keys: ["shift+p"], display: "Shift + P", does: "Freehand", run: use("freehand") },
      { keys: ["l"], display: "L", does: "Line: drag or two clicks; kept with its length", run: use("line") },
      { keys: ["."], display: ".", does: "Points: each click adds one, Enter or Esc begins others", run: use("point") },
      { keys: ["enter"], display: "Enter", does: "Finish; place a rectangle, an ellipse, a line, a point or a fixed size", run: () => suggested.accept() || tools.finish() },
      { keys: ["b"], display: "B", does: "Brush: paint", run: use("brush") },
      { keys: ["w"], display: "W", does: "Wand: take a colour; drag for more", run: use("wand") },
      { keys: ["shift+h"], display: "Shift + H", does: "Outline this: click inside; + and - for wider and tighter, Enter accepts", run: use("outline") },
      { keys: ["shift+g"], display: "Shift + G", does: "Fixed size: circle of 2.37 mm², square of 1 mm², grid of fields", run: use("fixed") },
      { keys: ["["], display: "[", does: "Smaller brush", run: () => tools.resizeBrush(false), repeats: true },
      { keys: ["]"], display: "]", does: "Larger brush", run: () => tools.resizeBrush(true), repeats: true },
      { keys: [], display: "Alt + drag", does: "Brush and wand: erase" },
      { keys: [], display: "Shift + drag", does: "Brush and wand: add to the selected region" },
      { keys: [], display: "Alt + click", does: "Remove a vertex" },
      { keys: ["ctrl+z"], display: "Ctrl + Z", does: "Undo", run: undo, repeats: true },
      { keys: ["ctrl+shift+z", "ctrl+y"], display: "Ctrl + Shift + Z", does: "Redo", run: redo, repeats: true },
    ],
  };
}

function changeKeys({ tools, selected, mapView, remove }: KeyTargets): KeyGroup {
  const nudge = (x: number, y: number, by: number) => () => {
    const step = by * Math.max(mapView.view.getResolution() ?? 1, 1);
    selected.move([x * step, y * step]);
  };
  const arrows = (["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"] as const).flatMap((key, index): KeyBinding[] => {
    const [x, y] = [[-1, 1, 0, 0][index] ?? 0, [0, 0, -1, 1][index] ?? 0];
    const name = key.toLowerCase();
    return [
      { keys: [`ctrl+${name}`], display: "", does: "", run: nudge(x, y, 1), repeats: true },
      { keys: [`ctrl+shift+${name}`], display: "", does: "", run: nudge(x, y, 10), repeats: true },
    ];
  });
  return {
    title: "Change the selected regions",
    bindings: [
      { keys: [], display: "Drag", does: "Move" },
      { keys: [], display: "Ctrl + arrows", does: "Move by a pixel; with Shift by ten" },
      { keys: ["shift+q"], display: "Shift + Q", does: "Turn left by 15°", run: () => selected.rotate(-15), repeats: true },
      { keys: ["shift+e"], display: "Shift + E", does: "Turn right by 15°", run: () => selected.rotate(15), repeats: true },
      { keys: ["ctrl+d"], display: "Ctrl + D", does: "Duplicate", run: () => selected.duplicate() },
      { keys: [], display: "Ctrl + V", does: "Paste at the pointer" },
      { keys: [], display: "Ctrl + Shift + V", does: "Paste in place" },
      { keys: ["ctrl+k"], display: "Ctrl + K", does: "Lock or unlock", run: () => selected.toggleLock() },
      { keys: ["u"], display: "U", does: "Unite", run: () => selected.combine("unite") },
      { keys: ["shift+u"], display: "Shift + U", does: "Subtract from the first", run: () => selected.combine("subtract") },
      { keys: ["shift+x"], display: "Shift + X", does: "Intersect with the first", run: () => selected.combine("intersect") },
      { keys: ["k"], display: "K", does: "Knife: split by a drag or two clicks", run: () => tools.use("split") },
      { keys: ["delete", "backspace"], display: "Delete", does: "Delete", run: remove },
      ...arrows,
    ],
  };
}

function labelKeys({ labels, setLabel }: KeyTargets): KeyGroup {
  const bindings = labels.onKeys.map((label) => ({
    keys: [label.key],
    display: label.key,
    does: label.name,
    run: () => setLabel(label.id),
  }));
  const used = new Set(bindings.flatMap(({ keys }) => keys));
  const free = Array.from({ length: 9 }, (_, index) => String(index + 1)).filter((key) => !used.has(key)).map((key): KeyBinding => ({
    ...{ keys: [key], display: "", does: "" },
    run: () => {
      const label = labels.onKeys.find((candidate) => candidate.key === key); // made while the image was open
      if (label) setLabel(label.id);
    },
  }));
  return { title: "Labels", bindings: [...bindings, ...free] };
}

function videoKeys(player: VideoPlayer, { span, miniMap }: KeyTargets): KeyGroup {
  const spanKeys: KeyBinding[] = [
    { keys: ["shift+i"], display: "Shift + I", does: "A span begins here, to loop or for a mosaic", run: () => span?.begin() },
    { keys: ["shift+o"], display: "Shift + O", does: "The span ends here", run: () => span?.end() },
    { keys: ["i"], display: "I", does: "Loop the span, and back", run: () => span?.toggleLoop() },
  ];
  const step = (by: number) => () => void player.step(by);
  return {
    title: "Video",
    bindings: [
      { keys: ["d"], display: "D", does: "One frame back", run: step(-1), repeats: true },
      { keys: ["f"], display: "F", does: "One frame on", run: step(1), repeats: true },
      { keys: ["c"], display: "C", does: "Ten frames back", run: step(-10), repeats: true },
      { keys: ["v"], display: "V", does: "Ten frames on", run: step(10), repeats: true },
      { keys: ["space"], display: "Space", does: "Play or pause", run: () => void player.toggle() },
      { keys: [], display: "J / K / L", does: "While it plays: slower, pause, faster" },
      ...spanKeys,
      { keys: ["g"], display: "G", does: "Map of the mosaic, or the regions", run: () => miniMap?.toggle() },
    ],
  };
}

function eventKeys(events: VideoEventPanel): KeyGroup {
  return {
    title: "Events of the video",
    bindings: [
      { keys: ["shift+v"], display: "Shift + V", does: "An event at this frame", run: () => events.addMoment() },
      { keys: ["shift+j"], display: "Shift + J", does: "An event begins here", run: () => events.beginSpan() },
      { keys: ["shift+k"], display: "Shift + K", does: "The event ends here", run: () => events.endSpan() },
    ],
  };
}

function trackKeys(tracks: Tracks, canAnnotate: boolean): KeyGroup {
  const go: KeyBinding[] = [
    { keys: ["<"], display: "<", does: "To the key frame before", run: () => tracks.actions.before() },
    { keys: [">"], display: ">", does: "To the next key frame", run: () => tracks.actions.after() },
  ];
  const change: KeyBinding[] = [
    { keys: ["y"], display: "Y", does: "A key frame here, of the region last selected", run: () => tracks.actions.key() },
    { keys: ["shift+y"], display: "Shift + Y", does: "Not on this frame", run: () => tracks.actions.outside() },
    { keys: ["t"], display: "T", does: "Follow it from this key frame on", run: () => tracks.actions.follow() },
    { keys: ["shift+t"], display: "Shift + T", does: "Follow it backwards", run: () => tracks.actions.back() },
  ];
  return { title: "Regions over several frames", bindings: canAnnotate ? [...go, ...change] : go };
}
