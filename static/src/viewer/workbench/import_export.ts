/** Files of other tools: the dialog that imports them, and the menu of exports. */

import { element, required } from "../../dom/elements";
import { stemOf } from "../lib/file_names";
import { viewPicture } from "../map/view_picture";
import { ImportDialog } from "../rois/panel/import_dialog";
import type { Parts } from "./parts";

export function connectImport(parts: Parts): void {
  const { root, canvas, labels, store, notice } = parts;
  if (!canvas.can_annotate) return;
  const dialog = new ImportDialog({
    ...{ root, canvas, labels },
    reload: async () => {
      await Promise.all([store.load(), parts.eventPanel?.load()]);
    },
    showNotice: (text) => notice.show(text),
  });
  root.querySelector("[data-import-open]")?.addEventListener("click", () => dialog.open());
}

/** The menu of exports: pictures of the view, or of the selected ROI. */
export function connectExports(parts: Parts): void {
  const { root, layer } = parts;
  const menu = root.querySelector<HTMLDetailsElement>("[data-export-menu]");
  const chosen = menu?.querySelector<HTMLAnchorElement>("[data-export-selection]");
  if (!menu || !chosen) return;
  menu.querySelector("[data-export-view]")?.addEventListener("click", () => void savePicture(parts));
  const base = chosen.href;
  menu.addEventListener("toggle", () => {
    chosen.hidden = layer.selectedId === null;
    chosen.href = `${base}&roi=${layer.selectedId ?? ""}`;
  });
  menu.addEventListener("click", (event) => {
    if ((event.target as Element).closest(".menu__item")) menu.open = false;
  });
}

async function savePicture({ root, canvas, mapView, player, notice }: Parts): Promise<void> {
  try {
    const picture = await viewPicture(mapView.map, required(root, "[data-readout=scale]"));
    const frame = player?.frame ? `-frame-${player.frame.index + 1}` : "";
    const href = URL.createObjectURL(picture);
    element("a", { href, download: `${stemOf(canvas.name)}${frame}.png` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  } catch (error) {
    notice.show(error instanceof Error ? error.message : String(error));
  }
}
