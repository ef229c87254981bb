/** "Find similar here": keys, buttons and bar that step through the places most similar to an ROI. */

import Feature from "ol/Feature";
import VectorLayer from "ol/layer/Vector";
import VectorSource from "ol/source/Vector";
import { getCenter, getWidth } from "ol/extent";
import { fromExtent } from "ol/geom/Polygon";

import { required } from "../../dom/elements";
import { extentFromBounds } from "../map/pixel_plane";
import { findSimilarRegions } from "../rois/store/similar_regions";
import type { RoiState } from "../rois/store/roi_state";
import { SimilarNavigation, overlapShare } from "../rois/drawing/similar_navigation";
import type { EndReason } from "../rois/drawing/similar_navigation";
import { PROPOSAL_STYLE } from "../rois/drawing/suggestion";
import { isArea } from "../rois/shapes/outlines";
import type { Tools } from "../rois/tools/tools";
import type { Parts } from "./parts";

/** The magnification stays, as long as the square takes this much of the window. */
const VISIBLE_SHARE = { min: 0.08, max: 0.8 };

export interface FindSimilarActions {
  next: () => void;
  back: () => void;
  dismiss: () => boolean;
}

const SELECT_FIRST = "Select one region first, to go to the places most similar to it.";
const ENDS: Record<EndReason, string> = {
  none: "Nothing left to show: this slide has no tissue without a region.",
  "all-visited": "No more places: every one was shown or has a region.",
  far: "No other place on this slide is similar to this region.",
};

export function connectFindSimilar(parts: Parts, tools: Tools): FindSimilarActions {
  const { root, canvas } = parts;
  const isSlide = canvas.modality === "histology" && (canvas.kind === "slide" || canvas.kind === "still");
  const isOwn = root.dataset.shared === undefined;
  const keys = isSlide && isOwn ? new FindSimilar(parts, tools) : refusal(parts, isSlide);
  for (const button of root.querySelectorAll<HTMLButtonElement>("[data-find-similar]")) {
    button.addEventListener("click", () => keys.next());
  }
  return keys;
}

/** Key actions that only show why there is no next place here. */
function refusal(parts: Parts, isSlide: boolean): FindSimilarActions {
  const { notice } = parts;
  const reason = isSlide ? "Find similar here works only in your own lab." : "Find similar here works on slides and stills of histology. For a region of endoscopy, use Similar cases.";
  return { next: () => notice.show(reason), back: () => void goBack(parts), dismiss: () => false };
}

async function goBack({ jumps, notice }: Parts): Promise<void> {
  if (!(await jumps.back())) notice.show("There is no earlier place to go back to.");
}

class FindSimilar implements FindSimilarActions {
  private readonly similar = new SimilarNavigation(findSimilarRegions);
  private readonly source = new VectorSource<Feature>({ wrapX: false });

  constructor(
    private readonly parts: Parts,
    private readonly tools: Tools,
  ) {
    const { root, mapView, notice } = parts;
    mapView.map.addLayer(new VectorLayer({ source: this.source, style: PROPOSAL_STYLE, className: "canvas-suggestion" }));
    const bar = required(root, "[data-similar-bar]");
    required(bar, "[data-similar-next]").addEventListener("click", () => this.next());
    required(bar, "[data-similar-back]").addEventListener("click", () => this.back());
    required(bar, "[data-similar-close]").addEventListener("click", () => this.dismiss());
    this.similar.on("change", () => this.show(bar));
    this.similar.on("failed", (text) => notice.show(text));
    this.similar.on("end", (reason) => this.showEnd(reason));
  }

  readonly next = (): void => void this.go(false);

  readonly back = (): void => {
    if (this.similar.waiting) this.similar.dismiss();
    else void goBack(this.parts);
  };

  readonly dismiss = (): boolean => this.similar.dismiss();

  private async go(includeDistant: boolean): Promise<void> {
    const { notice } = this.parts;
    const state = this.anchorRoi();
    if (!state) return notice.show(SELECT_FIRST);
    if (!isArea(state.geometry)) return notice.show("Points and lines have no area to compare: select an area.");
    if (!state.server) return notice.show("This region is not saved yet. Try again in a moment.");
    const anchor = { id: state.id, name: state.name };
    if (!(await this.similar.next(anchor, { includeDistant }))) return;
    if (this.tools.current === "move") this.jump();
    else notice.show("A similar place was found.", { label: "Go there", run: () => this.jump() }); // mid-stroke
  }

  /**
   * The ROI to compare with: the selected one, or the previous one if none or only the one at the place shown is
   * selected.
   */
  private anchorRoi(): RoiState | null {
    const { layer, store } = this.parts;
    const { anchor, place } = this.similar;
    const selected = store.get(layer.selectedId);
    const known = anchor ? store.get(anchor.id) : null;
    if (!known || known.deleted) return selected;
    if (!selected) return known;
    const isHere = place && selected.server && overlapShare(selected.server.bounds, place.bounds) > 0;
    return isHere ? known : selected;
  }

  private jump(): void {
    const { place } = this.similar;
    if (!place) return;
    const { layer, mapView, jumps } = this.parts;
    const view = mapView.place();
    const anchorId = this.similar.anchor?.id;
    jumps.record(() => this.similar.anchor?.id === anchorId && this.similar.back());
    if (layer.selectedId) layer.select(null); // its panel would show another place
    const extent = extentFromBounds(place.bounds);
    const { resolution, rotation } = view;
    const [width = 0, height = 0] = mapView.map.getSize() ?? [];
    const share = getWidth(extent) / resolution / Math.max(Math.min(width, height), 1);
    if (share < VISIBLE_SHARE.min || share > VISIBLE_SHARE.max) mapView.zoomTo(extent);
    else mapView.goTo({ center: getCenter(extent), resolution, rotation });
  }

  private showEnd(reason: EndReason): void {
    const { notice } = this.parts;
    const anyway = { label: "Show the nearest anyway", run: () => void this.go(true) };
    notice.show(ENDS[reason], reason === "far" ? anyway : undefined);
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
    if (anchor) this.parts.notice.hide(); // replaced by the bar
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
