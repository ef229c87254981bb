/**
 * ROIs on the map: one feature each. All of them are painted into a picture, which moves with the map and is
 * painted anew when something changes, not with every frame; what is selected lies above it, in copies
 * that can be dragged without touching the picture.
 */

import Feature from "ol/Feature";
import LayerGroup from "ol/layer/Group";
import VectorLayer from "ol/layer/Vector";
import VectorSource from "ol/source/Vector";
import { getHeight, getWidth } from "ol/extent";
import MultiPolygon from "ol/geom/MultiPolygon";
import Polygon from "ol/geom/Polygon";
import type { FeatureLike } from "ol/Feature";
import type Style from "ol/style/Style";

import { Emitter } from "../../lib/events";
import { oncePerRedraw } from "../../lib/redraw";
import type { Labels } from "../saved/labels";
import { geometryFromL0 } from "../../map/pixel_plane";
import type { GeometryOnMap } from "../../map/pixel_plane";
import { RestingPicture } from "./resting_picture";
import { dotStyle, nameStyle, outlineStyles, pointStyles, selectedPointStyles, selectedStyles } from "./style";
import type { RoiState } from "../saved/state";
import type { RoiStore } from "../saved/store";

/** With more ROIs than this, the edge around each line is left out: it trebles the lines to paint. */
const CASED_UP_TO = 1500;
/** More than this, each with its edge, take longer to paint than a frame lasts. */
const AT_ONCE_UP_TO = 200;
/** An outline smaller than this on screen is a dot. */
const SMALLEST_SCREEN_PX = 3;
/** The picture reaches beyond the window by this, so that a drag uncovers nothing. */
const PICTURE_RATIO = 1.4;
/** With more selected than this they stay in the picture, which is then painted anew. */
const COPIED_UP_TO = 200;

/** How far from an outline a click still means it. */
const REACH_SCREEN_PX = 4;
/** Points and lines have no inside to click into. */
const REACH_OF_MARKS_SCREEN_PX = 7;

export type RoiFeature = Feature<GeometryOnMap>;

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
  /** `overlaps` is how OpenLayers asks whether lines of one style may be stroked together. */
  readonly source = new VectorSource<RoiFeature>({ wrapX: false, overlaps: false });
  readonly layer: LayerGroup;
  private readonly picture: RestingPicture;
  private readonly copies = new VectorSource<RoiFeature>({ wrapX: false });
  /** The ids of all that are selected. */
  readonly chosen = new Set<string>();
  private modifying = false;
  isEditable = false;
  private names = false;
  private filled = false;
  private readonly filters = new Map<string, (state: RoiState) => boolean>();
  private readonly features = new Map<string, RoiFeature>();
  /** Thousands that change at once are reported once. */
  private readonly tellChosen = oncePerRedraw(() => this.emit("choose", this.selection));

  constructor(
    private readonly store: RoiStore,
    private readonly labels: Labels,
  ) {
    super();
    this.picture = new RestingPicture({
      source: this.source,
      style: (feature, resolution) => this.styleOf(feature, resolution),
      declutter: "roi-names",
      imageRatio: PICTURE_RATIO,
      className: "canvas-rois",
    });
    this.picture.isHeavy = () => this.features.size > AT_ONCE_UP_TO;
    const above = new VectorLayer({
      source: this.copies,
      style: (feature) => this.chosenStyleOf(feature),
      declutter: "roi-names",
      className: "canvas-rois-chosen",
    });
    this.layer = new LayerGroup({ layers: [this.picture, above] });
    store.on("added", (states) => this.add(states));
    store.on("changed", (state) => this.refresh(state));
    store.on("removed", (states) => this.remove(states));
  }

  /** What to drag: the copy of one that is selected. */
  featureOf(id: string | null): RoiFeature | null {
    return (id && (this.copyOf(id) ?? this.features.get(id))) || null;
  }

  /** While the user drags a vertex, an answer of the server must not replace the geometry. */
  get isModifying(): boolean {
    return this.modifying;
  }

  set isModifying(now: boolean) {
    if (now === this.modifying) return;
    this.modifying = now;
    this.picture.changed(); // what is dragged is not where it was
  }

  private copyOf(id: string): RoiFeature | null {
    return this.copies.getFeatureById(id);
  }

  /** The smallest ROI under a point of the map, so that one inside another can be reached. */
  at(coordinate: number[], resolution: number): RoiState | null {
    const reach = REACH_OF_MARKS_SCREEN_PX * resolution; // the longer of the two
    const [x = 0, y = 0] = coordinate;
    let best: RoiFeature | null = null;
    let bestSize = Infinity;
    for (const feature of this.source.getFeaturesInExtent([x - reach, y - reach, x + reach, y + reach])) {
      const geometry = feature.getGeometry();
      if (!geometry || !isUnder(geometry, coordinate, resolution)) continue;
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
    this.copyChosen();
    if (this.selectedId !== before) this.emit("select", this.store.get(this.selectedId));
    this.emit("choose", this.selection);
  }

  /** Copies of what is selected, above the picture. */
  private copyChosen(): void {
    const wasAbove = this.copies.getFeatures().length > 0 || this.chosen.size === 0;
    const ids = this.chosen.size <= COPIED_UP_TO ? this.chosen : new Set<string>();
    const gone = this.copies.getFeatures().filter((copy) => !ids.has(String(copy.getId())));
    if (gone.length) this.copies.removeFeatures(gone);
    const fresh = [...ids].filter((id) => !this.copyOf(id)).flatMap((id) => {
      const feature = this.features.get(id);
      const geometry = feature?.getGeometry()?.clone();
      if (!feature || !geometry) return [];
      const copy: RoiFeature = new Feature(geometry);
      copy.setId(id);
      copy.set("shown", feature.get("shown"), true);
      return [copy];
    });
    if (fresh.length) this.copies.addFeatures(fresh);
    const isAbove = ids.size > 0 || this.chosen.size === 0;
    if (!wasAbove || !isAbove) this.picture.changed(); // thousands are selected, or no longer
    else this.copies.changed();
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
      const copy = this.copyOf(state.id);
      if (copy) this.copies.removeFeature(copy);
    }
    this.add(live);
    this.copyChosen();
  }

  private passes(state: RoiState): boolean {
    return [...this.filters.values()].every((filter) => filter(state));
  }

  toggle(what: keyof Display): void {
    if (what === "visible") this.layer.setVisible(!this.layer.getVisible());
    else this[what] = !this[what];
    this.picture.changed();
    this.copies.changed();
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
    if (!fresh.length) return;
    this.source.addFeatures(fresh);
    if (fresh.some((feature) => this.chosen.has(String(feature.getId())))) this.copyChosen();
  }

  /** Show it as it is now. */
  refresh(state: RoiState): void {
    if (state.deleted) return;
    if (!this.isOnFrame(state)) return this.takeOff(state);
    if (!this.features.has(state.id)) this.add([state]); // its new label may have brought it in
    const isDragged = this.isModifying && this.chosen.has(state.id);
    const copy = this.copyOf(state.id);
    for (const feature of [this.features.get(state.id), copy]) {
      if (!feature) continue;
      if (feature.get("shown") === state.geometry || isDragged) {
        if (feature === copy) this.copies.changed(); // a change of its own would take its vertex out of the hand
        else feature.changed();
      } else {
        feature.set("shown", state.geometry, true);
        feature.setGeometry(geometryFromL0(state.geometry));
      }
    }
    if (state.id === this.selectedId) this.emit("select", state);
    else if (this.chosen.has(state.id)) this.tellChosen();
  }

  private isOnFrame(state: RoiState): boolean {
    return this.filters.get("frame")?.(state) ?? true;
  }

  /** It is on another frame; what is selected stays selected. */
  private takeOff(state: RoiState): void {
    const feature = this.features.get(state.id);
    if (feature) this.source.removeFeature(feature);
    this.features.delete(state.id);
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
    const isSelected = this.chosen.has(id);
    if (isSelected && this.isModifying && this.copyOf(id)) return undefined;
    if (isSelected && this.chosen.size > COPIED_UP_TO) return this.chosenStyleOf(feature);
    const color = this.labels.colorOf(state.label);
    if (state.shape === "point") return this.named(state, pointStyles(color));
    if (isTiny(feature, resolution)) return [dotStyle(color)];
    return this.named(state, outlineStyles(color, { filled: this.filled, cased: this.features.size <= CASED_UP_TO }));
  }

  private chosenStyleOf(feature: FeatureLike): Style[] | undefined {
    const state = this.store.get(String(feature.getId()));
    if (!state) return undefined;
    const editable = this.isEditable && this.chosen.size === 1 && hasVertices(state);
    const color = this.labels.colorOf(state.label);
    if (state.shape === "point") return this.named(state, selectedPointStyles(color));
    return this.named(state, selectedStyles(feature, color, { editable, filled: this.filled }));
  }

  private named(state: RoiState, styles: Style[]): Style[] {
    const name = this.nameOf(state);
    return name ? [...styles, nameStyle(name)] : styles;
  }

  private nameOf(state: RoiState): string {
    if (!this.names) return "";
    return state.name || (state.label ? this.labels.nameOf(state.label) : "");
  }
}

function isTiny(feature: FeatureLike, resolution: number): boolean {
  const extent = feature.getGeometry()?.getExtent();
  return Boolean(extent && Math.max(getWidth(extent), getHeight(extent)) < SMALLEST_SCREEN_PX * resolution);
}

/** Whether the pointer at a place of the map means it: in it, or near enough. */
export function isUnder(geometry: GeometryOnMap, at: number[], resolution: number): boolean {
  const [[x = 0, y = 0], [nearX = 0, nearY = 0]] = [at, geometry.getClosestPoint(at)];
  const isArea = geometry instanceof Polygon || geometry instanceof MultiPolygon;
  const reach = (isArea ? REACH_SCREEN_PX : REACH_OF_MARKS_SCREEN_PX) * resolution;
  return Math.hypot(nearX - x, nearY - y) <= reach || geometry.intersectsCoordinate(at);
}

/** An ellipse has handles of its own, and what is locked has none. */
export function hasVertices(state: RoiState): boolean {
  return !state.locked && state.shape !== "ellipse";
}
