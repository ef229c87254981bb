/** The map of regions with its legend, and the list of the selected regions. */
import { element, required } from "../dom/elements";
import { ApiError, getJson } from "../dom/http";
import { SelectionList } from "./selection_list";
import type { Addresses } from "./selection_list";
import { colorsOf, pointsOf, legendEntries } from "./color_scale";
import type { LegendEntry } from "./color_scale";
import { ScatterPlot } from "./scatter_plot";
import type { Colouring, MapPoints } from "./map_points";

const NO_COLOURING: Colouring = { name: "label", values: [], at: [] };
const ZOOM_STEP = 1.6; // of the buttons
const REST_MS = 120; // pause of the pointer before a picture is requested

export async function startRegionMap(root: HTMLElement): Promise<void> {
  const state = required(root, "output");
  try {
    const points = await getJson<MapPoints>(root.dataset.regionMap ?? "");
    state.hidden = true;
    new RegionMap(root, points);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    state.textContent = `The map could not be loaded. ${error.message}`;
  }
}

class RegionMap {
  private readonly plane: ScatterPlot;
  private readonly chosen: SelectionList;
  private readonly hidden = new Set<number>(); // by value: two labels may share a name
  private readonly legend: HTMLElement;
  private resting = 0;
  private readonly addresses: Addresses;
  private colouring: Colouring;

  constructor(
    private readonly root: HTMLElement,
    private readonly points: MapPoints,
  ) {
    const placeholder = root.dataset.placeholder ?? "";
    this.addresses = {
      viewer: (canvas, roi) => `${(root.dataset.viewer ?? "").replace(placeholder, canvas)}?roi=${roi}`,
      thumbnail: (roi, version) => `${(root.dataset.thumbnail ?? "").replace(placeholder, roi)}?v=${version}`,
    };
    this.legend = required(root, "[data-map-legend]");
    const plane = required(root, ".region-map__plane");
    this.plane = new ScatterPlot(plane, points, {
      hover: (at, x, y) => this.showTip(at, x, y),
      open: (at) => location.assign(this.addressOf(at)),
      select: (found) => this.choose(found),
    });
    const labels = this.colouringOf("label");
    this.chosen = new SelectionList(
      root,
      points,
      this.addresses,
      (at) => this.plane.point(at),
      (at) => labels.values[labels.at[at] ?? -1]?.name ?? "No label",
      () => this.choose([]),
    );
    this.colouring = labels;
    const colour = required<HTMLSelectElement>(root, "[data-map-colour]");
    colour.addEventListener("change", () => {
      this.colouring = this.colouringOf(colour.value);
      this.hidden.clear();
      this.colour();
    });
    this.tools();
    root.addEventListener("relabelled", () => location.reload());
    this.colour();
  }

  private colouringOf(name: string): Colouring {
    return this.points.colourings.find((colouring) => colouring.name === name) ?? NO_COLOURING;
  }

  private addressOf(at: number): string {
    const canvas = this.points.canvases[this.points.canvas[at] ?? 0]?.id ?? "";
    return this.addresses.viewer(canvas, this.points.rois[at] ?? "");
  }

  private choose(found: number[]): void {
    this.plane.choose(found);
    this.chosen.show(found);
  }

  private colour(): void {
    const rows = legendEntries(this.colouring);
    this.plane.color(colorsOf(this.colouring, rows, this.hidden));
    this.legend.replaceChildren(...rows.map((row) => this.row(row)));
  }

  private row(shade: LegendEntry): HTMLElement {
    const tick = element("input", { type: "checkbox", "aria-label": `Show ${shade.name}` });
    tick.checked = shade.values.some((value) => !this.hidden.has(value));
    tick.addEventListener("change", () => {
      for (const value of shade.values) {
        if (tick.checked) this.hidden.delete(value);
        else this.hidden.add(value);
      }
      this.colour();
    });
    const dot = element("span", { class: "swatch", "aria-hidden": "true" });
    dot.style.setProperty("--swatch", shade.color);
    const count = element("span", { class: "num muted" }, shade.count.toLocaleString("en"));
    const pick = element("button", { type: "button", class: "region-map__value", title: "Select these" }, dot, shade.name);
    pick.addEventListener("click", () => this.choose(pointsOf(this.colouring, shade)));
    return element("li", {}, tick, pick, count);
  }

  private showTip(at: number, x: number, y: number): void {
    const tip = required(this.root, ".region-map__tip");
    clearTimeout(this.resting);
    tip.hidden = at < 0;
    if (at < 0) return;
    const canvas = this.points.canvases[this.points.canvas[at] ?? 0];
    const label = this.colouringOf("label");
    const words = [label.values[label.at[at] ?? -1]?.name ?? "No label", canvas?.name, canvas?.accession];
    const valueName = this.colouring.values[this.colouring.at[at] ?? -1]?.name;
    if (valueName && !words.includes(valueName)) words.push(valueName);
    required(tip, "div").textContent = words.filter(Boolean).join(" · ");
    const address = this.addresses.thumbnail(this.points.rois[at] ?? "", this.points.versions[at] ?? 1);
    const picture = required<HTMLImageElement>(tip, "img");
    if (picture.getAttribute("src") !== address) {
      picture.removeAttribute("src");
      this.resting = window.setTimeout(() => (picture.src = address), REST_MS);
    }
    const { clientWidth: width, clientHeight: height } = required(this.root, ".region-map__plane");
    tip.style.left = `${Math.max(0, x + 16 + tip.offsetWidth > width ? x - 16 - tip.offsetWidth : x + 16)}px`;
    tip.style.top = `${Math.max(0, Math.min(y + 16, height - tip.offsetHeight))}px`;
  }

  private tools(): void {
    const select = required(this.root, "[data-map-tool]");
    select.addEventListener("click", () => {
      this.plane.isSelecting = !this.plane.isSelecting;
      select.setAttribute("aria-pressed", String(this.plane.isSelecting));
    });
    required(this.root, "[data-map-in]").addEventListener("click", () => this.plane.zoomBy(ZOOM_STEP));
    required(this.root, "[data-map-out]").addEventListener("click", () => this.plane.zoomBy(1 / ZOOM_STEP));
    required(this.root, "[data-map-fit]").addEventListener("click", () => this.plane.showAll());
  }
}
