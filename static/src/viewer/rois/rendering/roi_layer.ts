/**
 * ROIs on the map: one feature each. All of them are painted into a picture, which moves with the map and is
 * painted again when something changes, not with every frame; what is selected lies above it, in copies
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
import { oncePerFrame } from "../../lib/scheduling";
import type { Labels } from "../store/labels";
import { geometryFromL0 } from "../../map/pixel_plane";
import type { GeometryOnMap } from "../../map/pixel_plane";
import { DeferredImageLayer } from "./deferred_layer";
import { dotStyle, nameStyle, outlineStyles, pointStyles, selectedPointStyles, selectedStyles } from "./styles";
import type { RoiState } from "../store/roi_state";
import type { RoiStore } from "../store/roi_store";

/** Largest number of ROIs drawn with a contrasting edge, which trebles the lines to paint. */
const MAX_CASED = 1500;
/** Largest number of ROIs, each with its edge, that are painted within a frame. */
const MAX_FEATURES_PER_PAINT = 200;
/** An outline smaller than this on screen is a dot. */
const SMALLEST_SCREEN_PX = 3;
/** The picture reaches beyond the window by this, so that a drag uncovers nothing. */
const PICTURE_RATIO = 1.4;
/** Largest number of selected ROIs that are moved to a layer of their own. */
const MAX_COPIED = 200;

/** Largest distance from an outline at which a click hits it. */
const REACH_SCREEN_PX = 4;
/** Points and lines have no inside to click into. */
const REACH_OF_MARKS_SCREEN_PX = 7;

export type RoiFeature = Feature<GeometryOnMap>;

/** Display options of the ROI layer. */
export interface Display {
  visible: boolean;
  names: boolean;
  filled: boolean;
}

interface LayerEvents {
  /** The one ROI that is selected; null if there is none, or several. */
  select: RoiState | null;
  /** All selected ROIs. */
  selection: RoiState[];
  display: Display;
}

export class RoiLayer extends Emitter<LayerEvents> {
  /** `overlaps` is how OpenLayers asks whether lines of one style may be stroked together. */
  readonly source = new VectorSource<RoiFeature>({ wrapX: false, overlaps: false });
  readonly layer: LayerGroup;
  private readonly picture: DeferredImageLayer;
  private readonly copies = new VectorSource<RoiFeature>({ wrapX: false });
  /** The ids of all that are selected. */
  readonly selectedIds = new Set<string>();
  private modifying = false;
  isEditable = false;
  private names = false;
  private filled = false;
  private readonly filters = new Map<string, (state: RoiState) => boolean>();
  private readonly features = new Map<string, RoiFeature>();
  /** Batches many changes into one event. */
  private readonly emitSelection = oncePerFrame(() => this.emit("selection", this.selection));

  constructor(
    private readonly store: RoiStore,
    private readonly labels: Labels,
  ) {
    super();
    this.picture = new DeferredImageLayer({
      source: this.source,
      style: (feature, resolution) => this.styleOf(feature, resolution),
      declutter: "roi-names",
      imageRatio: PICTURE_RATIO,
      className: "canvas-rois",
    });
    this.picture.isHeavy = () => this.features.size > MAX_FEATURES_PER_PAINT;
    const above = new VectorLayer({
      source: this.copies,
      style: (feature) => this.selectedStyleOf(feature),
      declutter: "roi-names",
      className: "canvas-rois-chosen",
    });
    this.layer = new LayerGroup({ layers: [this.picture, above] });
    labels.on("display", () => this.showDisplay());
    this.showDisplay();
    store.on("added", (states) => this.add(states));
    store.on("changed", (state) => this.refresh(state));
    store.on("removed", (states) => this.remove(states));
  }

  /** Feature of an ROI; the copy if it is selected. */
  featureOf(id: string | null): RoiFeature | null {
    return (id && (this.copyOf(id) ?? this.features.get(id))) || null;
  }

  /** Whether the user drags a vertex: then answers of the server do not replace the geometry. */
  get isModifying(): boolean {
    return this.modifying;
  }

  set isModifying(now: boolean) {
    if (now === this.modifying) return;
    this.modifying = now;
    this.picture.changed(); // hides the originals of dragged copies
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

  /** The selected ROI if exactly one is selected. */
  get selectedId(): string | null {
    const [first = null] = this.selectedIds;
    return this.selectedIds.size === 1 ? first : null;
  }

  get selection(): RoiState[] {
    return [...this.selectedIds].map((id) => this.store.get(id)).filter((state) => state !== null);
  }

  /** ROIs on the map that pass the filters, in list order. */
  visibleRois(): RoiState[] {
    return this.store.existingObjects().filter((state) => this.features.has(state.id));
  }

  select(id: string | null): void {
    this.selectMany(id === null ? [] : [id]);
  }

  selectMany(ids: Iterable<string>): void {
    const next = new Set(ids);
    if (next.size === this.selectedIds.size && [...next].every((id) => this.selectedIds.has(id))) return;
    const before = this.selectedId;
    this.selectedIds.clear();
    for (const id of next) this.selectedIds.add(id);
    this.copySelected();
    if (this.selectedId !== before) this.emit("select", this.store.get(this.selectedId));
    this.emit("selection", this.selection);
  }

  /** Copies of what is selected, above the picture. */
  private copySelected(): void {
    const wasAbove = this.copies.getFeatures().length > 0 || this.selectedIds.size === 0;
    const ids = this.selectedIds.size <= MAX_COPIED ? this.selectedIds : new Set<string>();
    const outdated = this.copies.getFeatures().filter((copy) => !ids.has(String(copy.getId())));
    if (outdated.length) this.copies.removeFeatures(outdated);
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
    const isAbove = ids.size > 0 || this.selectedIds.size === 0;
    if (!wasAbove || !isAbove) this.picture.changed(); // selections of thousands are drawn in the picture
    else this.copies.changed();
  }

  /** Add ROIs to the selection, or remove them from it. */
  toggleSelected(id: string): void {
    const next = new Set(this.selectedIds);
    if (!next.delete(id)) next.add(id);
    this.selectMany(next);
  }

  /** Choose by one reason which ROIs are on the map: they must pass the filters of all reasons. */
  setFilter(reason: "frame" | "label", filter: (state: RoiState) => boolean): void {
    this.filters.set(reason, filter);
    const live = this.store.existingObjects();
    for (const state of live) {
      const feature = this.features.get(state.id);
      if (!feature || this.passesFilters(state)) continue;
      this.source.removeFeature(feature);
      this.features.delete(state.id);
      const copy = this.copyOf(state.id);
      if (copy) this.copies.removeFeature(copy);
    }
    this.add(live);
    this.copySelected();
  }

  private passesFilters(state: RoiState): boolean {
    return [...this.filters.values()].every((filter) => filter(state));
  }

  /** Paint in the colours and the opacity that were chosen; what is selected stays opaque. */
  private showDisplay(): void {
    this.picture.setOpacity(this.labels.display.opacity);
    this.picture.changed();
    this.copies.changed();
  }

  toggle(option: keyof Display): void {
    if (option === "visible") this.layer.setVisible(!this.layer.getVisible());
    else this[option] = !this[option];
    this.picture.changed();
    this.copies.changed();
    const visible = this.layer.getVisible();
    this.emit("display", { visible, names: this.names, filled: this.filled });
  }

  private add(states: RoiState[]): void {
    const fresh: RoiFeature[] = [];
    for (const state of states) {
      if (!this.passesFilters(state) || this.features.has(state.id)) continue;
      const feature: RoiFeature = new Feature(geometryFromL0(state.geometry));
      feature.setId(state.id);
      feature.set("shown", state.geometry, true);
      this.features.set(state.id, feature);
      fresh.push(feature);
    }
    if (!fresh.length) return;
    this.source.addFeatures(fresh);
    if (fresh.some((feature) => this.selectedIds.has(String(feature.getId())))) this.copySelected();
  }

  /** Redraw an ROI in its current state. */
  refresh(state: RoiState): void {
    if (state.deleted) return;
    if (!this.isOnFrame(state)) return this.hide(state);
    if (!this.features.has(state.id)) this.add([state]); // its new label may have brought it in
    const isDragged = this.isModifying && this.selectedIds.has(state.id);
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
    else if (this.selectedIds.has(state.id)) this.emitSelection();
  }

  private isOnFrame(state: RoiState): boolean {
    return this.filters.get("frame")?.(state) ?? true;
  }

  /** Remove an ROI of another frame from the map; it stays selected. */
  private hide(state: RoiState): void {
    const feature = this.features.get(state.id);
    if (feature) this.source.removeFeature(feature);
    this.features.delete(state.id);
  }

  private remove(states: RoiState[]): void {
    const ids = new Set(states.map((state) => state.id));
    for (const state of states) {
      const feature = this.features.get(state.id);
      if (feature) this.source.removeFeature(feature);
      this.features.delete(state.id);
    }
    this.selectMany([...this.selectedIds].filter((id) => !ids.has(id)));
  }

  private styleOf(feature: FeatureLike, resolution: number): Style[] | undefined {
    const id = String(feature.getId());
    const state = this.store.get(id);
    if (!state) return undefined;
    const isSelected = this.selectedIds.has(id);
    if (isSelected && this.isModifying && this.copyOf(id)) return undefined;
    if (isSelected && this.selectedIds.size > MAX_COPIED) return this.selectedStyleOf(feature);
    const color = this.labels.colorOf(state.label);
    if (state.shape === "point") return this.withName(state, pointStyles(color));
    if (isTiny(feature, resolution)) return [dotStyle(color)];
    return this.withName(state, outlineStyles(color, { filled: this.filled, cased: this.features.size <= MAX_CASED }));
  }

  private selectedStyleOf(feature: FeatureLike): Style[] | undefined {
    const state = this.store.get(String(feature.getId()));
    if (!state) return undefined;
    const editable = this.isEditable && this.selectedIds.size === 1 && hasVertices(state);
    const color = this.labels.colorOf(state.label);
    if (state.shape === "point") return this.withName(state, selectedPointStyles(color));
    return this.withName(state, selectedStyles(feature, color, { editable, filled: this.filled }));
  }

  private withName(state: RoiState, styles: Style[]): Style[] {
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

/** True if the pointer at a place of the map is in the ROI, or near enough. */
export function isUnder(geometry: GeometryOnMap, at: number[], resolution: number): boolean {
  const [[x = 0, y = 0], [nearX = 0, nearY = 0]] = [at, geometry.getClosestPoint(at)];
  const isArea = geometry instanceof Polygon || geometry instanceof MultiPolygon;
  const reach = (isArea ? REACH_SCREEN_PX : REACH_OF_MARKS_SCREEN_PX) * resolution;
  return Math.hypot(nearX - x, nearY - y) <= reach || geometry.intersectsCoordinate(at);
}

/** True if vertices can be edited: not of ellipses, which have handles, nor of locked ROIs. */
export function hasVertices(state: RoiState): boolean {
  return !state.locked && state.shape !== "ellipse";
}
