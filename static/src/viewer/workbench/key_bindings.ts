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
  /** While an outline is proposed, some keys belong to it. */
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
  /** On a video: the span for a new mosaic, the small map of an existing one, and ROIs over several frames. */
  span: SpanPicker | null;
  miniMap: MiniMap | null;
  tracks: Tracks | null;
  /** On a video. */
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
      { keys: ["+", "="], shown: "+", does: "Zoom in", run: () => suggested.step(1) || mapView.zoomBy(2), repeats: true },
      { keys: ["-"], shown: "-", does: "Zoom out", run: () => suggested.step(-1) || mapView.zoomBy(0.5), repeats: true },
      { keys: ["z"], shown: "Z", does: "To the next higher objective (1×, 2.5×, 5×, 10×, 20×, 40×)", run: () => stepObjective(1), repeats: true },
      { keys: ["shift+z"], shown: "Shift + Z", does: "To the next lower objective", run: () => stepObjective(-1), repeats: true },
      { keys: ["home"], shown: "Home", does: "Fit the image", run: () => mapView.fit() },
      { keys: ["x"], shown: "X", does: "Full screen, and back", run: () => fullScreen(mapView.target) },
      { keys: [], shown: "Middle button + drag", does: "Pan, whatever the tool" },
      { keys: [], shown: "Shift + drag", does: "Rotate" },
      { keys: ["q"], shown: "Q", does: "Turn left by 15°", run: () => mapView.rotateBy(-15), repeats: true },
      { keys: ["e"], shown: "E", does: "Turn right by 15°", run: () => mapView.rotateBy(15), repeats: true },
      { keys: ["0"], shown: "0", does: "Reset rotation", run: () => mapView.resetRotation() },
      { keys: ["shift+c"], shown: "Shift + C", does: "Colours: brightness, contrast, gamma, channels, stains", run: adjustments },
      { keys: ["a"], shown: "A", does: "Show or hide regions", run: () => layer.toggle("visible") },
      { keys: ["n"], shown: "N", does: "Show or hide names", run: () => layer.toggle("names") },
      { keys: ["shift+f"], shown: "Shift + F", does: "Fill regions", run: () => layer.toggle("filled") },
      { keys: ["escape"], shown: "Esc", does: "Cancel (Ctrl + Z brings it back), deselect", run: () => suggested.dismiss() || (tools.current === "move" && similar.dismiss()) || tools.cancel() },
      { keys: ["?"], shown: "?", does: "This sheet", run: openSheet },
    ],
  };
}

function imageKeys({ images }: KeyTargets): KeyGroup {
  return {
    title: "Images of the case",
    bindings: [
      { keys: ["pagedown"], shown: "Page Down", does: "Next image", run: () => images.step(1) },
      { keys: ["pageup"], shown: "Page Up", does: "Previous image", run: () => images.step(-1) },
      { keys: ["shift+s"], shown: "Shift + S", does: "Show or hide the images of the case", run: () => images.toggleTray() },
    ],
  };
}

function selectKeys({ tools, selected, canAnnotate, similar }: KeyTargets): KeyGroup {
  const use = (tool: ToolName) => () => tools.use(tool);
  return {
    title: "Select and measure",
    bindings: [
      { keys: ["s"], shown: "S", does: "Select by a box (Shift adds)", run: use("select") },
      { keys: ["h"], shown: "H", does: "Search with a box; no region is made", run: use("search") },
      { keys: [], shown: "Shift + click", does: "Add to the selection, or remove from it" },
      { keys: ["ctrl+a"], shown: "Ctrl + A", does: "Select all that is shown", run: () => selected.selectAll() },
      { keys: ["shift+a"], shown: "Shift + A", does: "Select all of the same label", run: () => selected.selectSameLabel() },
      { keys: ["shift+n"], shown: "Shift + N", does: "Find similar here: the most similar place on this slide", run: () => similar.next() },
      { keys: ["shift+b"], shown: "Shift + B", does: "Back to where you were before a jump", run: () => similar.back() },
      { keys: [], shown: "Ctrl + C", does: "Copy" },
      { keys: canAnnotate ? ["shift+m"] : ["shift+m", "l"], shown: canAnnotate ? "Shift + M" : "L", does: "Ruler: drag or two clicks", run: use("ruler") },
      { keys: ["shift+l"], shown: "Shift + L", does: "Angle: three clicks, or drag a side and click", run: use("angle") },
    ],
  };
}

function drawKeys({ tools, undo, redo, suggested }: KeyTargets): KeyGroup {
  const use = (tool: ToolName) => () => tools.use(tool);
  return {
    title: "Draw",
    bindings: [
      { keys: ["r"], shown: "R", does: "Rectangle", run: use("rectangle") },
      { keys: ["o"], shown: "O", does: "Ellipse", run: use("ellipse") },
      { keys: ["p"], shown: "P", does: "Polygon; continues one left unfinished", run: use("polygon") },
      { keys: ["shift+p"], shown: "Shift + P", does: "Freehand", run: use("freehand") },
      { keys: ["l"], shown: "L", does: "Line: drag or two clicks; kept with its length", run: use("line") },
      { keys: ["."], shown: ".", does: "Points: each click adds one, Enter or Esc begins others", run: use("point") },
      { keys: ["enter"], shown: "Enter", does: "Finish; place a rectangle, an ellipse, a line, a point or a fixed size", run: () => suggested.accept() || tools.finish() },
      { keys: ["b"], shown: "B", does: "Brush: paint", run: use("brush") },
      { keys: ["w"], shown: "W", does: "Wand: take a colour; drag for more", run: use("wand") },
      { keys: ["shift+h"], shown: "Shift + H", does: "Outline this: click inside; + and - for wider and tighter, Enter accepts", run: use("outline") },
      { keys: ["shift+g"], shown: "Shift + G", does: "Fixed size: circle of 2.37 mm², square of 1 mm², grid of fields", run: use("fixed") },
      { keys: ["["], shown: "[", does: "Smaller brush", run: () => tools.resizeBrush(false), repeats: true },
      { keys: ["]"], shown: "]", does: "Larger brush", run: () => tools.resizeBrush(true), repeats: true },
      { keys: [], shown: "Alt + drag", does: "Brush and wand: erase" },
      { keys: [], shown: "Shift + drag", does: "Brush and wand: add to the selected region" },
      { keys: [], shown: "Alt + click", does: "Remove a vertex" },
      { keys: ["ctrl+z"], shown: "Ctrl + Z", does: "Undo", run: undo, repeats: true },
      { keys: ["ctrl+shift+z", "ctrl+y"], shown: "Ctrl + Shift + Z", does: "Redo", run: redo, repeats: true },
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
      { keys: [`ctrl+${name}`], shown: "", does: "", run: nudge(x, y, 1), repeats: true },
      { keys: [`ctrl+shift+${name}`], shown: "", does: "", run: nudge(x, y, 10), repeats: true },
    ];
  });
  return {
    title: "Change the selected regions",
    bindings: [
      { keys: [], shown: "Drag", does: "Move" },
      { keys: [], shown: "Ctrl + arrows", does: "Move by a pixel; with Shift by ten" },
      { keys: ["shift+q"], shown: "Shift + Q", does: "Turn left by 15°", run: () => selected.rotate(-15), repeats: true },
      { keys: ["shift+e"], shown: "Shift + E", does: "Turn right by 15°", run: () => selected.rotate(15), repeats: true },
      { keys: ["ctrl+d"], shown: "Ctrl + D", does: "Duplicate", run: () => selected.duplicate() },
      { keys: [], shown: "Ctrl + V", does: "Paste at the pointer" },
      { keys: [], shown: "Ctrl + Shift + V", does: "Paste in place" },
      { keys: ["ctrl+k"], shown: "Ctrl + K", does: "Lock or unlock", run: () => selected.toggleLock() },
      { keys: ["u"], shown: "U", does: "Unite", run: () => selected.combine("unite") },
      { keys: ["shift+u"], shown: "Shift + U", does: "Subtract from the first", run: () => selected.combine("subtract") },
      { keys: ["shift+x"], shown: "Shift + X", does: "Intersect with the first", run: () => selected.combine("intersect") },
      { keys: ["k"], shown: "K", does: "Knife: split by a drag or two clicks", run: () => tools.use("split") },
      { keys: ["delete", "backspace"], shown: "Delete", does: "Delete", run: remove },
      ...arrows,
    ],
  };
}

function labelKeys({ labels, setLabel }: KeyTargets): KeyGroup {
  const bindings = labels.onKeys.map((label) => ({
    keys: [label.key],
    shown: label.key,
    does: label.name,
    run: () => setLabel(label.id),
  }));
  const used = new Set(bindings.flatMap(({ keys }) => keys));
  const free = Array.from({ length: 9 }, (_, index) => String(index + 1)).filter((key) => !used.has(key)).map((key): KeyBinding => ({
    ...{ keys: [key], shown: "", does: "" },
    run: () => {
      const label = labels.onKeys.find((candidate) => candidate.key === key); // made while the image was open
      if (label) setLabel(label.id);
    },
  }));
  return { title: "Labels", bindings: [...bindings, ...free] };
}

function videoKeys(player: VideoPlayer, { span, miniMap }: KeyTargets): KeyGroup {
  const spanKeys: KeyBinding[] = [
    { keys: ["shift+i"], shown: "Shift + I", does: "A span begins here, to loop or for a mosaic", run: () => span?.begin() },
    { keys: ["shift+o"], shown: "Shift + O", does: "The span ends here", run: () => span?.end() },
    { keys: ["i"], shown: "I", does: "Loop the span, and back", run: () => span?.toggleLoop() },
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
      { keys: [], shown: "J / K / L", does: "While it plays: slower, pause, faster" },
      ...spanKeys,
      { keys: ["g"], shown: "G", does: "Map of the mosaic, or the regions", run: () => miniMap?.toggle() },
    ],
  };
}

function eventKeys(events: VideoEventPanel): KeyGroup {
  return {
    title: "Events of the video",
    bindings: [
      { keys: ["shift+v"], shown: "Shift + V", does: "An event at this frame", run: () => events.addMoment() },
      { keys: ["shift+j"], shown: "Shift + J", does: "An event begins here", run: () => events.beginSpan() },
      { keys: ["shift+k"], shown: "Shift + K", does: "The event ends here", run: () => events.endSpan() },
    ],
  };
}

function trackKeys(tracks: Tracks, canAnnotate: boolean): KeyGroup {
  const go: KeyBinding[] = [
    { keys: ["<"], shown: "<", does: "To the key frame before", run: () => tracks.actions.before() },
    { keys: [">"], shown: ">", does: "To the next key frame", run: () => tracks.actions.after() },
  ];
  const change: KeyBinding[] = [
    { keys: ["y"], shown: "Y", does: "A key frame here, of the region last selected", run: () => tracks.actions.key() },
    { keys: ["shift+y"], shown: "Shift + Y", does: "Not on this frame", run: () => tracks.actions.outside() },
    { keys: ["t"], shown: "T", does: "Follow it from this key frame on", run: () => tracks.actions.follow() },
    { keys: ["shift+t"], shown: "Shift + T", does: "Follow it backwards", run: () => tracks.actions.back() },
  ];
  return { title: "Regions over several frames", bindings: canAnnotate ? [...go, ...change] : go };
}
