/** Key bindings of the compare page. */

import type { KeyBinding, KeyGroup } from "../lib/key_bindings";
import type { Pane } from "./pane";

export interface CompareActions {
  panes: Pane[];
  /** The pane used last. */
  active: () => Pane;
  toggleSync: () => void;
  matchScale: () => void;
  fit: () => void;
  toggle: (option: "visible" | "names") => void;
  add: () => void;
  openSheet: () => void;
}

export function compareKeyBindings(actions: CompareActions): KeyGroup[] {
  const { panes, active } = actions;
  const view = (run: (pane: Pane) => void) => () => run(active());
  const all: KeyBinding[] = [
    { keys: ["t"], display: "T", does: "Synchronise the images, or move each separately", run: actions.toggleSync },
    { keys: ["shift+t"], display: "Shift + T", does: "One magnification for all", run: actions.matchScale },
    { keys: ["i"], display: "I", does: "Add another image", run: actions.add },
    { keys: ["a"], display: "A", does: "Show or hide regions", run: () => actions.toggle("visible") },
    { keys: ["n"], display: "N", does: "Show or hide names", run: () => actions.toggle("names") },
    { keys: ["?"], display: "?", does: "This sheet", run: actions.openSheet },
    ...panes.map((pane, at) => ({
      keys: [String(at + 1)],
      display: String(at + 1),
      does: `To image ${at + 1}`,
      run: () => pane.target.focus(),
    })),
  ];
  const paneBindings: KeyBinding[] = [
    { keys: [], display: "Arrows", does: "Move the image" },
    { keys: ["+", "="], display: "+", does: "Zoom in", run: view((pane) => pane.mapView.zoomBy(2)), repeats: true },
    { keys: ["-"], display: "-", does: "Zoom out", run: view((pane) => pane.mapView.zoomBy(0.5)), repeats: true },
    { keys: ["z"], display: "Z", does: "To the next higher objective", run: view((pane) => pane.mapView.stepMagnification(1)), repeats: true },
    { keys: ["shift+z"], display: "Shift + Z", does: "To the next lower objective", run: view((pane) => pane.mapView.stepMagnification(-1)), repeats: true },
    { keys: ["home"], display: "Home", does: "Fit the image", run: actions.fit },
    { keys: ["q"], display: "Q", does: "Turn left by 15°", run: view((pane) => pane.mapView.rotateBy(-15)), repeats: true },
    { keys: ["e"], display: "E", does: "Turn right by 15°", run: view((pane) => pane.mapView.rotateBy(15)), repeats: true },
    { keys: ["0"], display: "0", does: "Reset rotation", run: view((pane) => pane.mapView.resetRotation()) },
  ];
  const groups = [{ title: "All images", bindings: all }, { title: "The image in use", bindings: paneBindings }];
  return panes.some(({ player }) => player) ? [...groups, videoKeys(actions)] : groups;
}

function videoKeys({ panes, active }: CompareActions): KeyGroup {
  const player = () => active().player ?? panes.find((pane) => pane.player)?.player;
  const step = (by: number) => () => void player()?.step(by);
  return {
    title: "Video",
    bindings: [
      { keys: ["d"], display: "D", does: "One frame back", run: step(-1), repeats: true },
      { keys: ["f"], display: "F", does: "One frame on", run: step(1), repeats: true },
      { keys: ["c"], display: "C", does: "Ten frames back", run: step(-10), repeats: true },
      { keys: ["v"], display: "V", does: "Ten frames on", run: step(10), repeats: true },
      { keys: ["space"], display: "Space", does: "Play or pause", run: () => void player()?.toggle() },
    ],
  };
}
