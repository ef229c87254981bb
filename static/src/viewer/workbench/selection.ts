/** The panel of what is selected, its handles, and the clipboard. */

import { clipboard } from "../rois/tools/clipboard";
import type { RoiCommands } from "../rois/tools/commands";
import { Handles } from "../rois/tools/handles";
import { SelectionPanel } from "../rois/panel/selection_panel";
import type { PanelActions } from "../rois/panel/selection_panel";
import type { Tools } from "../rois/tools/tools";
import { l0FromMap } from "../map/pixel_plane";
import type { PanelTabs } from "../lib/panel_tabs";
import type { Position } from "../lib/types";
import type { Parts } from "./parts";

export function connectSelection(
  parts: Parts,
  tools: Tools,
  commands: RoiCommands,
  tabs: PanelTabs,
  actions: Omit<PanelActions, "split">,
): void {
  const { root, canvas, labels, layer, edits, mapView, notice, leaving } = parts;
  const showNotice = (text: string): void => notice.show(text);
  edits.onRefused = showNotice;
  tools.commands = commands;
  new SelectionPanel(root, canvas, layer, labels, commands, tabs, { ...actions, split: () => tools.use("split") });
  if (canvas.can_annotate) {
    const handles = new Handles(mapView.map, layer, edits, commands, () => tools.isIdle());
    tools.on("tool", () => handles.place());
  }
  clipboard(canvas, labels, layer, commands, pointerPositions(parts), showNotice, leaving);
}

/** Pointer position on the image, and centre of the view. */
function pointerPositions({ mapView }: Parts): { pointer: () => Position | null; centre: () => Position } {
  let pointer: Position | null = null;
  mapView.map.on("pointermove", (event) => (pointer = l0FromMap(event.coordinate)));
  mapView.target.addEventListener("pointerleave", () => (pointer = null));
  return { pointer: () => pointer, centre: () => l0FromMap(mapView.view.getCenter() ?? [0, 0]) };
}
