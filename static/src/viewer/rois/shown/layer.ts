/** ROIs on the map: one feature each, drawn on a canvas, with the selected one above the others. */

import Feature from "ol/Feature";
import VectorLayer from "ol/layer/Vector";
import VectorSource from "ol/source/Vector";
import { getHeight, getWidth } from "ol/extent";
import type { FeatureLike } from "ol/Feature";
import type MultiPolygon from "ol/geom/MultiPolygon";
import type Polygon from "ol/geom/Polygon";
import type Style from "ol/style/Style";

import { Emitter } from "../../lib/events";
import { oncePerRedraw } from "../../lib/redraw";
import type { Labels } from "../saved/labels";
import { geometryFromL0 } from "../../map/pixel_plane";
import { nameStyle, outlineStyles, selectedStyles } from "./style";
import type { RoiState } from "../saved/state";
import type { RoiStore } from "../saved/store";

/** With more ROIs than this, the dark edge is left out: it doubles the lines to draw. */
const CASED_UP_TO = 1500;
/** An outline smaller than this on screen is only noise. */
const SMALLEST_SCREEN_PX = 1.5;

/** How far from an outline a click still means it. */
const REACH_SCREEN_PX = 4;

export type RoiFeature = Feature<Polygon | MultiPolygon>;

/** What is shown of the ROIs. */
export interface Display {
  visible: boolean;
  names: boolean;
  filled: boolean;
}

interface LayerEvents {
  /** The one ROI that is selected; null where there is none, or several. */
  select: RoiState | null;
  /** All that are selected. */
  choose: RoiState[];
  display: Display;
}

export class RoiLayer extends Emitter<LayerEvents> {
  readonly source = new VectorSource<RoiFeature>({ wrapX: false });
  readonly layer: VectorLayer<VectorSource<RoiFeature>>;
  /** The ids of all that are selected. */
  readonly chosen = new Set<string>();
  /** While the user drags a vertex, an answer of the server must not replace the geometry. */
  isModifying = false;
  isEditable = false;
  private names = false;
  private filled = false;
  private readonly filters = new Map<string, (state: RoiState) => boolean>();
  private readonly features = new Map<string, RoiFeature>();
  /** Thousands that change at once are told of once. */
  private readonly tellChosen = oncePerRedraw(() => this.emit("choose", this.selection));

  constructor(
    private readonly store: RoiStore,
    private readonly labels: Labels,
  ) {
    super();
    this.layer = new VectorLayer({
      source: this.source,
      style: (feature, resolution) => this.styleOf(feature, resolution),
      declutter: "roi-names",
      updateWhileInteracting: false,
      className: "canvas-rois",
    });
    store.on("added", (states) => this.add(states));
    store.on("changed", (state) => this.refresh(state));
    store.on("removed", (states) => this.remove(states));
  }

  featureOf(id: string | null): RoiFeature | null {
    return (id && this.features.get(id)) || null;
  }

  /** The smallest ROI under a point of the map, so that one inside another can be reached. */
  at(coordinate: number[], resolution: number): RoiState | null {
    const reach = REACH_SCREEN_PX * resolution;
    const [x = 0, y = 0] = coordinate;
    let best: RoiFeature | null = null;
    let bestSize = Infinity;
    for (const feature of this.source.getFeaturesInExtent([x - reach, y - reach, x + reach, y + reach])) {
      const geometry = feature.getGeometry();
      if (!geometry) continue;
      const [nearX = 0, nearY = 0] = geometry.getClosestPoint(coordinate);
      const isNear = Math.hypot(nearX - x, nearY - y) <= reach;
      if (!isNear && !geometry.intersectsCoordinate(coordinate)) continue;
      const extent = geometry.getExtent();
      const size = getWidth(extent) * getHeight(extent);
      if (size < bestSize) [best, bestSize] = [feature, size];
    }
    return best ? this.store.get(String(best.getId())) : null;
  }

  /** The one that is selected, where it is one. */
  get selectedId(): string | null {
    const [first = null] = this.chosen;
    return this.chosen.size === 1 ? first : null;
  }

  get selection(): RoiState[] {
    return [...this.chosen].map((id) => this.store.get(id)).filter((state) => state !== null);
  }

  /** What is on the map and passes the filters, in the order of the list. */
  shown(): RoiState[] {
    return this.store.live().filter((state) => this.features.has(state.id));
  }

  select(id: string | null): void {
    this.choose(id === null ? [] : [id]);
  }

  choose(ids: Iterable<string>): void {
    const next = new Set(ids);
    if (next.size === this.chosen.size && [...next].every((id) => this.chosen.has(id))) return;
    const before = this.selectedId;
    this.chosen.clear();
    for (const id of next) this.chosen.add(id);
    this.layer.changed();
    if (this.selectedId !== before) this.emit("select", this.store.get(this.selectedId));
    this.emit("choose", this.selection);
  }

  /** Add to what is selected, or take away from it. */
  toggleChosen(id: string): void {
    const next = new Set(this.chosen);
    if (!next.delete(id)) next.add(id);
    this.choose(next);
  }

  /** Choose by one reason which ROIs are on the map: they must pass the filters of all reasons. */
  setFilter(reason: "frame" | "label", filter: (state: RoiState) => boolean): void {
    this.filters.set(reason, filter);
    const live = this.store.live();
    for (const state of live) {
      const feature = this.features.get(state.id);
      if (!feature || this.passes(state)) continue;
      this.source.removeFeature(feature);
      this.features.delete(state.id);
    }
    this.add(live);
  }

  private passes(state: RoiState): boolean {
    return [...this.filters.values()].every((filter) => filter(state));
  }

  toggle(what: keyof Display): void {
    if (what === "visible") this.layer.setVisible(!this.layer.getVisible());
    else this[what] = !this[what];
    this.layer.changed();
    const visible = this.layer.getVisible();
    this.emit("display", { visible, names: this.names, filled: this.filled });
  }

  private add(states: RoiState[]): void {
    const fresh: RoiFeature[] = [];
    for (const state of states) {
      if (!this.passes(state) || this.features.has(state.id)) continue;
      const feature: RoiFeature = new Feature(geometryFromL0(state.geometry));
      feature.setId(state.id);
      feature.set("shown", state.geometry, true);
      this.features.set(state.id, feature);
      fresh.push(feature);
    }
    if (fresh.length) this.source.addFeatures(fresh);
  }

  private refresh(state: RoiState): void {
    if (state.deleted) return;
    if (!this.features.has(state.id)) this.add([state]); // its new label may have brought it in
    const feature = this.features.get(state.id);
    if (!feature) return;
    if (feature.get("shown") !== state.geometry && !(this.isModifying && this.chosen.has(state.id))) {
      feature.set("shown", state.geometry, true);
      feature.setGeometry(geometryFromL0(state.geometry));
    } else {
      feature.changed();
    }
    if (state.id === this.selectedId) this.emit("select", state);
    else if (this.chosen.has(state.id)) this.tellChosen();
  }

  private remove(states: RoiState[]): void {
    const gone = new Set(states.map((state) => state.id));
    for (const state of states) {
      const feature = this.features.get(state.id);
      if (feature) this.source.removeFeature(feature);
      this.features.delete(state.id);
    }
    this.choose([...this.chosen].filter((id) => !gone.has(id)));
  }

  private styleOf(feature: FeatureLike, resolution: number): Style[] | undefined {
    const id = String(feature.getId());
    const state = this.store.get(id);
    if (!state) return undefined;
    const color = this.labels.colorOf(state.label);
    const isSelected = this.chosen.has(id);
    const extent = feature.getGeometry()?.getExtent();
    const isTiny = extent && Math.max(getWidth(extent), getHeight(extent)) < SMALLEST_SCREEN_PX * resolution;
    if (isTiny && !isSelected) return undefined;
    const name = this.names ? state.name || (state.label ? this.labels.nameOf(state.label) : "") : "";
    if (isSelected) {
      const editable = this.isEditable && this.chosen.size === 1 && hasVertices(state);
      const styles = selectedStyles(feature, color, { editable, filled: this.filled });
      return name ? [...styles, nameStyle(name)] : styles;
    }
    const styles = outlineStyles(color, { filled: this.filled, cased: this.features.size <= CASED_UP_TO });
    return name ? [...styles, nameStyle(name)] : styles;
  }
}

/** An ellipse has handles of its own, and what is locked has none. */
export function hasVertices(state: RoiState): boolean {
  return !state.locked && state.shape === "polygon";
}
