/** Files of other tools: the dialog that imports them, and the menu of exports. */

import { boundsFromExtent } from "../map/pixel_plane";
import { ImportDialog } from "../rois/panel/import_dialog";
import type { Parts } from "./parts";

export function connectImport({ root, canvas, labels, store, notice }: Parts): void {
  if (!canvas.can_annotate) return;
  const dialog = new ImportDialog({
    ...{ root, canvas, labels },
    reload: () => store.load(),
    tell: (text) => notice.show(text),
  });
  root.querySelector("[data-import-open]")?.addEventListener("click", () => dialog.open());
}

/** Its pictures show what is in view, or the chosen ROI. */
export function connectExports({ root, mapView, layer, player }: Parts): void {
  const menu = root.querySelector<HTMLDetailsElement>("[data-export-menu]");
  const view = menu?.querySelector<HTMLAnchorElement>("[data-export-view]");
  const chosen = menu?.querySelector<HTMLAnchorElement>("[data-export-chosen]");
  if (!menu || !view || !chosen) return;
  const base = view.href;
  menu.addEventListener("toggle", () => {
    if (!menu.open) return;
    const bounds = boundsFromExtent(mapView.view.calculateExtent());
    const window_px = bounds.map((side) => side.toFixed(1)).join(",");
    const frame = player?.frame ? `&frame=${player.frame.index}` : "";
    view.href = `${base}&window=${window_px}${frame}`;
    chosen.hidden = layer.selectedId === null;
    chosen.href = `${base}&roi=${layer.selectedId ?? ""}`;
  });
  menu.addEventListener("click", (event) => {
    if ((event.target as Element).closest("a")) menu.open = false;
  });
}
