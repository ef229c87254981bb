/** "Next similar": the key and the buttons, the bar, the square on the map, and the way back. */

import Feature from "ol/Feature";
import VectorLayer from "ol/layer/Vector";
import VectorSource from "ol/source/Vector";
import { getCenter, getWidth } from "ol/extent";
import { fromExtent } from "ol/geom/Polygon";

import { required } from "../../dom/elements";
import type { ViewPlace } from "../map/view_moves";
import { extentFromBounds } from "../map/pixel_plane";
import { placesLike } from "../rois/saved/places";
import type { RoiState } from "../rois/saved/state";
import { NextSimilar, over } from "../rois/sketch/next_similar";
import type { End } from "../rois/sketch/next_similar";
import { PROPOSED } from "../rois/sketch/suggestion";
import { isArea } from "../rois/shapes/outlines";
import type { Tools } from "../rois/tools/tools";
import type { Parts } from "./parts";

/** The magnification stays, as long as the square takes this much of the window. */
const SHARE_OF_WINDOW = { least: 0.08, most: 0.8 };

export interface SimilarKeys {
  next: () => void;
  back: () => void;
  dismiss: () => boolean;
}

const SELECT_FIRST = "Select one ROI first. Then the next place that looks like it is shown.";
const ENDS: Record<End, string> = {
  none: "Nothing is left to show: all tissue of this slide is drawn on, or it has none.",
  seen: "That was all: every place of this slide was shown or is drawn on.",
  far: "No other place of this slide is close to this ROI.",
};

export function connectSimilarPlaces(parts: Parts, tools: Tools): SimilarKeys {
  const { root, canvas } = parts;
  const isSlide = canvas.kind === "slide" || canvas.kind === "still";
  const isOwn = root.dataset.shared === undefined;
  const keys = isSlide && isOwn ? new SimilarPlaces(parts, tools) : refusal(parts, isSlide);
  for (const button of root.querySelectorAll<HTMLButtonElement>("[data-next-similar]")) {
    button.addEventListener("click", () => keys.next());
  }
  return keys;
}

/** Keys that only say why there is no next place here. */
function refusal({ notice }: Parts, isSlide: boolean): SimilarKeys {
  const why = isSlide ? "Next similar works only in your own lab." : "Next similar is for slides. Similar cases finds what looks like an ROI of a video or a mosaic.";
  return { next: () => notice.show(why), back: () => undefined, dismiss: () => false };
}

class SimilarPlaces implements SimilarKeys {
  private readonly similar = new NextSimilar(placesLike);
  private readonly source = new VectorSource<Feature>({ wrapX: false });
  /** Where the view was before each jump. */
  private readonly before: ViewPlace[] = [];

  constructor(
    private readonly parts: Parts,
    private readonly tools: Tools,
  ) {
    const { root, mapView, notice } = parts;
    mapView.map.addLayer(new VectorLayer({ source: this.source, style: PROPOSED, className: "canvas-suggestion" }));
    const bar = required(root, "[data-similar-bar]");
    required(bar, "[data-similar-next]").addEventListener("click", () => this.next());
    required(bar, "[data-similar-back]").addEventListener("click", () => this.back());
    required(bar, "[data-similar-close]").addEventListener("click", () => this.dismiss());
    this.similar.on("change", () => this.show(bar));
    this.similar.on("failed", (text) => notice.show(text));
    this.similar.on("end", (why) => this.tellEnd(why));
  }

  readonly next = (): void => void this.go(false);

  readonly back = (): void => {
    const { similar, before } = this;
    const anchor = similar.anchor;
    if (!anchor) return this.parts.notice.show("There is no earlier place to go back to.");
    if (similar.waiting) return void similar.dismiss();
    const view = before.pop();
    if (view) this.parts.mapView.goTo(view);
    if (!similar.back()) this.parts.layer.select(anchor.id);
  };

  readonly dismiss = (): boolean => {
    this.before.length = 0;
    return this.similar.dismiss();
  };

  private async go(evenFar: boolean): Promise<void> {
    const { notice } = this.parts;
    const state = this.toGoBy();
    if (!state) return notice.show(SELECT_FIRST);
    if (!isArea(state.geometry)) return notice.show("Points and lines have no area to compare: select an area.");
    if (!state.server) return notice.show("This ROI is not saved yet. Try again in a moment.");
    if (state.id !== this.similar.anchor?.id) this.before.length = 0;
    const anchor = { id: state.id, name: state.name };
    if (!(await this.similar.next(anchor, { evenFar }))) return;
    if (this.tools.current === "move") this.jump();
    else notice.show("A similar place was found.", { label: "Go there", run: () => this.jump() }); // mid-stroke
  }

  /** The ROI to go by: the selected one; the one before, where none is selected or only one at the place shown. */
  private toGoBy(): RoiState | null {
    const { layer, store } = this.parts;
    const { anchor, place } = this.similar;
    const selected = store.get(layer.selectedId);
    const known = anchor ? store.get(anchor.id) : null;
    if (!known || known.deleted) return selected;
    if (!selected) return known;
    const isHere = place && selected.server && over(selected.server.bounds, place.bounds) > 0;
    return isHere ? known : selected;
  }

  private jump(): void {
    const { place } = this.similar;
    if (!place) return;
    const { layer, mapView } = this.parts;
    const view = mapView.place();
    this.before.push(view);
    if (layer.selectedId) layer.select(null); // its panel would speak of another place
    const extent = extentFromBounds(place.bounds);
    const { resolution, rotation } = view;
    const [width = 0, height = 0] = mapView.map.getSize() ?? [];
    const share = getWidth(extent) / resolution / Math.max(Math.min(width, height), 1);
    if (share < SHARE_OF_WINDOW.least || share > SHARE_OF_WINDOW.most) mapView.zoomTo(extent);
    else mapView.goTo({ center: getCenter(extent), resolution, rotation });
  }

  private tellEnd(why: End): void {
    const { notice } = this.parts;
    const anyway = { label: "Show the nearest anyway", run: () => void this.go(true) };
    notice.show(ENDS[why], why === "far" ? anyway : undefined);
    if (!this.similar.place) this.dismiss(); // no bar; what is selected stays
  }

  private show(bar: HTMLElement): void {
    const { similar } = this;
    const { place, waiting, anchor } = similar;
    this.source.clear();
    if (place) this.source.addFeature(new Feature(fromExtent(extentFromBounds(place.bounds))));
    bar.hidden = !anchor;
    bar.toggleAttribute("aria-busy", waiting !== null);
    required(bar, "[data-similar-text]").textContent = waiting ? waitText(waiting) : this.placeText();
    required<HTMLButtonElement>(bar, "[data-similar-next]").disabled = waiting !== null;
    required<HTMLButtonElement>(bar, "[data-similar-back]").hidden = !place;
    if (anchor) this.parts.notice.hide(); // the bar stands in its place
  }

  private placeText(): string {
    const { place, at, anchor } = this.similar;
    if (!place || !anchor) return "";
    const to = anchor.name ? ` to ${anchor.name}` : "";
    return `Similar${to}: place ${at}${closeText(place)}`;
  }
}

function closeText({ p_value, is_close }: { p_value: number | null; is_close: boolean | null }): string {
  if (is_close === false) return " · not close";
  if (p_value === null) return "";
  const percent = Math.min(Math.floor(Math.round((1 - p_value) * 1e6) / 1e3), 999) / 10;
  return ` · nearer than ${percent} % of unrelated tissue`;
}

function waitText({ isQueued, done, total }: { isQueued: boolean; done: number; total: number }): string {
  if (isQueued) return "Waiting for a worker…";
  return total ? `Sampling the slide… ${done} of ${total}` : "Sampling the slide…";
}
