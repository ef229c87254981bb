/** The list of the regions that are selected: pictures, links, and a label for all of them. */
import { toast } from "../app/toasts";
import { element, required } from "../dom/elements";
import type { Schemas } from "../api/schemas";
import { API_ROOT, ApiError, postJson } from "../dom/http";
import { skippedText, relabelBatches } from "./map_points";
import type { MapPoints, Refused } from "./map_points";

const PART = 30; // rows that are added at once

export interface Addresses {
  viewer(canvas: string, roi: string): string;
  thumbnail(roi: string, version: number): string;
}

export class SelectionList {
  private ids: number[] = [];
  private shown = 0;
  private readonly list: HTMLElement;
  private readonly versions: number[];

  constructor(
    private readonly root: HTMLElement,
    private readonly points: MapPoints,
    private readonly addresses: Addresses,
    private readonly point: (at: number) => void,
    private readonly label: (at: number) => string,
    onClear: () => void,
  ) {
    this.list = required(root, "[data-map-list]");
    this.versions = [...points.versions];
    required(root, "[data-map-more]").addEventListener("click", () => this.showMore());
    required(root, "[data-map-clear]").addEventListener("click", onClear);
    const form = root.querySelector<HTMLFormElement>("[data-map-relabel]");
    form?.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.relabel(form);
    });
  }

  show(ids: number[]): void {
    this.ids = ids;
    this.shown = 0;
    this.list.replaceChildren();
    const count = ids.length;
    required(this.root, "[data-map-count]").textContent =
      count === 0 ? "Nothing selected" : `${count.toLocaleString("en")} ${count === 1 ? "region" : "regions"}`;
    required(this.root, "[data-map-hint]").hidden = count > 0;
    required(this.root, "[data-map-clear]").hidden = count === 0;
    const form = this.root.querySelector<HTMLFormElement>("[data-map-relabel]");
    if (form) form.hidden = count === 0;
    this.showMore();
  }

  private showMore(): void {
    const next = this.ids.slice(this.shown, this.shown + PART);
    this.list.append(...next.map((at) => this.row(at)));
    this.shown += next.length;
    required(this.root, "[data-map-more]").hidden = this.shown >= this.ids.length;
  }

  private row(at: number): HTMLElement {
    const roi = this.points.rois[at] ?? "";
    const canvas = this.points.canvases[this.points.canvas[at] ?? 0];
    const picture = element("img", { loading: "lazy", alt: "", width: "320", height: "240" });
    picture.src = this.addresses.thumbnail(roi, this.points.versions[at] ?? 1);
    const link = element("a", { href: this.addresses.viewer(canvas?.id ?? "", roi) }, `Region on ${canvas?.name ?? ""}`);
    link.addEventListener("focus", () => this.point(at));
    link.addEventListener("blur", () => this.point(-1));
    const words = [this.label(at), canvas?.accession ?? ""].filter(Boolean).join(" · ");
    const row = element("li", {}, picture, element("div", {}, link, element("span", { class: "small muted" }, words)));
    row.addEventListener("pointerenter", () => this.point(at));
    row.addEventListener("pointerleave", () => this.point(-1));
    return row;
  }

  /** Relabel in one request per image; regions changed by others are left and reported. */
  private async relabel(form: HTMLFormElement): Promise<void> {
    const label = required<HTMLSelectElement>(form, "select").value;
    const button = required<HTMLButtonElement>(form, "button");
    button.disabled = true;
    let changedCount = 0;
    const failed: Refused[] = [];
    for (const { canvas, ids } of relabelBatches(this.ids, this.points)) {
      const changes = ids.map((at) => ({ do: "update", id: this.points.rois[at], version: this.versions[at], label }));
      try {
        const answer = await postJson<Schemas["RoisChanged"]>(`${API_ROOT}/rois/bulk/`, { canvas, changes });
        answer.rois.forEach((roi, row) => (this.versions[ids[row] ?? -1] = roi.version));
        changedCount += ids.length;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        failed.push({ canvas, reason: error.message });
      }
    }
    button.disabled = false;
    if (changedCount) toast(`${changedCount.toLocaleString("en")} ${changedCount === 1 ? "region is" : "regions are"} relabelled.`, "success");
    if (failed.length) toast(skippedText(failed), "error");
    if (changedCount) this.root.dispatchEvent(new CustomEvent("relabelled", { bubbles: true }));
  }
}
