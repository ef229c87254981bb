/** The deleted ROIs of the canvas, each with a drawing, the last deleted first; each can be restored. */

import { roisDeleted } from "../store/api";
import { element, required } from "../../../dom/elements";
import type { RoiEdits } from "../store/edits";
import type { Labels } from "../store/labels";
import { outlinePreview } from "../rendering/outline_preview";
import { RoiState } from "../store/roi_state";
import type { RoiStore } from "../store/roi_store";
import type { Roi } from "../../lib/types";

export class DeletedRois {
  private readonly list: HTMLElement;

  constructor(
    private readonly host: HTMLElement,
    private readonly canvas: string,
    private readonly store: RoiStore,
    private readonly edits: RoiEdits,
    private readonly labels: Labels,
    private readonly goTo: (state: RoiState) => void,
  ) {
    this.list = required(host, "ol");
    host.addEventListener("toggle", () => void this.load());
    store.sync.on("status", ({ status }) => status === "saved" && void this.load());
  }

  private async load(): Promise<void> {
    if (!this.host.hasAttribute("open")) return;
    try {
      const rois = await roisDeleted(this.canvas);
      const rows = rois.map((roi) => this.row(roi));
      this.list.replaceChildren(...(rows.length ? rows : [element("li", { class: "muted" }, "None.")]));
    } catch (error) {
      const reason = error instanceof Error ? error.message : "";
      this.list.replaceChildren(element("li", {}, `They could not be read. ${reason}`));
    }
  }

  private row(roi: Roi): HTMLElement {
    const title = roi.name || (roi.label ? this.labels.nameOf(roi.label) : "Unnamed region");
    const when = roi.deleted_at ?? "";
    const restore = { type: "button", class: "btn btn--small btn--quiet", "aria-label": `Restore ${title}` };
    return element(
      "li",
      {},
      element("span", { class: "revision-number" }),
      outlinePreview(roi.geometry, this.labels.colorOf(roi.label), null),
      element("span", {}, title),
      element("time", { datetime: when }, new Date(when).toLocaleString()),
      element("button", { ...restore, click: () => this.restore(roi) }, "Restore"),
    );
  }

  private restore(roi: Roi): void {
    const state = this.store.get(roi.id) ?? RoiState.fromServer(roi);
    this.edits.restore(state);
    this.goTo(state);
  }
}
