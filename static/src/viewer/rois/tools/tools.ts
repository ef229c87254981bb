/** The active tool. Vertices of the selected ROI are moved with the tool `move`. */

import Collection from "ol/Collection";
import { altKeyOnly } from "ol/events/condition";
import Draw from "ol/interaction/Draw";
import type Interaction from "ol/interaction/Interaction";
import type Modify from "ol/interaction/Modify";
import type OlMap from "ol/Map";
import type MapBrowserEvent from "ol/MapBrowserEvent";
import type LineString from "ol/geom/LineString";
import type Polygon from "ol/geom/Polygon";

import { Emitter } from "../../lib/events";
import { geometryToL0, l0FromMap, mapFromL0, sameGeometry } from "../../map/pixel_plane";
import { viewportOf } from "../../map/viewport";
import { searchBoxInteraction, boxSelect } from "./box_select";
import { Brush } from "./brush";
import type { RoiCommands } from "./commands";
import { SHAPES, drawInteraction, shapeInView, drawnOutline } from "../drawing/draw_interaction";
import type { DrawContext, DrawTool } from "../drawing/draw_interaction";
import type { Outline, RoiEdits } from "../store/edits";
import { sketchStyle } from "../rendering/styles";
import { hasVertices } from "../rendering/roi_layer";
import type { RoiFeature, RoiLayer } from "../rendering/roi_layer";
import { FixedSizeTool } from "./fixed_size";
import type { FixedSizePlanner } from "../drawing/fixed_size_planner";
import { FIXED_SIZE_KEY, propertiesOfSize } from "../shapes/fixed_size";
import { Measuring } from "./measuring";
import { MoveRois } from "./move_rois";
import { newUnfinishedOutline } from "../drawing/unfinished_outlines";
import type { UnfinishedOutline } from "../drawing/unfinished_outlines";
import { Painting } from "./painting";
import { LineDrawing } from "./line_drawing";
import { lineInView } from "./lines";
import { Points } from "./points";
import { Press } from "./press";
import { modifyInteraction } from "./vertices";
import { Sketch } from "../drawing/sketch";
import { SnapTargets } from "./snapping";
import type { RoiStore } from "../store/roi_store";
import { READ_ONLY_TOOLS, SELECTING_TOOLS, isDrawTool } from "./tool_names";
import type { ToolName } from "./tool_names";
import { TouchCount, TwoFingerPan } from "./touches";
import type { Extent } from "ol/extent";
import type { Position, RoiShape } from "../../lib/types";
import { Wand } from "./wand";

interface ToolEvents {
  tool: ToolName;
  notice: string;
  /** Number of points placed of a line or an outline, for the hint. */
  step: number;
  /** A length or an angle, as it is shown. */
  measured: string;
  /** A point of the outline under the pen was set. */
  drawn: UnfinishedOutline;
  /** The outline of this id is finished or was discarded. */
  ended: string;
  /** Esc while an outline was open. */
  cancelled: UnfinishedOutline;
  /** Another tool or frame was chosen while an outline was open. */
  left: UnfinishedOutline;
  /** A click outside of ROIs, in level-0 pixels; `isFramesTool` if made with the frames tool. */
  point: { at: Position; isFramesTool: boolean };
  search: Extent; // a box, on the map
}

const UNSCALED = "The size of a pixel is unknown, so no region of a fixed size can be placed. Set the pixel size first.";

/** Tools with a layer or a ring of their own on the map. */
function hasLayer(interaction: Interaction | null): interaction is Brush | Wand | FixedSizeTool {
  return interaction instanceof Brush || interaction instanceof Wand || interaction instanceof FixedSizeTool;
}

export class Tools extends Emitter<ToolEvents> {
  current: ToolName = "move";
  commands: RoiCommands | null = null; // set once the page has them
  private isPanning = false;
  private activeInteraction: Interaction | null = null;
  private sketch: Sketch | null = null;
  private resumed: UnfinishedOutline | null = null;
  private readonly selected = new Collection<RoiFeature>();
  private readonly modify: Modify | null;
  private readonly snapping: SnapTargets;
  private readonly measuring: Measuring;
  private readonly painting: Painting;
  private readonly points: Points;

  constructor(
    private readonly map: OlMap,
    private readonly store: RoiStore,
    private readonly edits: RoiEdits,
    private readonly layer: RoiLayer,
    private readonly context: DrawContext & { mpp: [number, number] | null; fixedSizes: FixedSizePlanner | null },
    private readonly canAnnotate: boolean,
    leaving: AbortSignal,
  ) {
    super();
    this.snapping = new SnapTargets(map, layer.source);
    this.measuring = new Measuring(map, context.mpp);
    this.painting = new Painting(layer, edits, context);
    this.points = new Points(layer, edits, context);
    if (canAnnotate) map.addInteraction(new MoveRois(layer, () => this.commands, () => this.isIdle()));
    this.modify = canAnnotate ? this.addModify() : null;
    layer.isEditable = canAnnotate;
    layer.on("select", () => this.followSelection());
    map.on("click", (event) => this.click(event));
    map.on("moveend", () => this.gatherSnapTargets());
    map.on("pointermove", (event) => this.hover(event));
    new TouchCount(viewportOf(map), (isSeveral) => this.switchToPan(isSeveral), leaving);
    map.addInteraction(new TwoFingerPan(() => this.activeInteraction !== null));
  }

  /** True if a drag may move what is selected. */
  isIdle(): boolean {
    return this.current === "move" && !this.isPanning && this.canAnnotate;
  }

  use(tool: ToolName): void {
    if (!READ_ONLY_TOOLS.has(tool) && !this.canAnnotate) return;
    if (tool === "fixed" && !this.context.fixedSizes) return this.emit("notice", UNSCALED);
    if (this.sketch && tool === this.current) return;
    this.leave();
    if (this.activeInteraction) this.map.removeInteraction(this.activeInteraction);
    if (hasLayer(this.activeInteraction)) this.activeInteraction.leave();
    this.map.removeInteraction(this.snapping.interaction);
    this.activeInteraction = this.createInteraction(tool);
    if (isDrawTool(tool) || tool === "line" || tool === "point") this.layer.select(null);
    if (this.activeInteraction) {
      if (tool !== "frames" && !this.layer.layer.getVisible()) this.layer.toggle("visible");
      this.map.addInteraction(this.activeInteraction);
      this.gatherSnapTargets();
    }
    this.modify?.setActive(tool === "move");
    // after the others: it moves their points; those of strokes and boxes stay where the hand is
    if (this.canAnnotate && (this.draw || !this.activeInteraction)) this.map.addInteraction(this.snapping.interaction);
    this.current = tool;
    this.setCursor(this.idleCursor());
    this.emit("tool", tool);
    this.emit("step", 0);
  }

  /** Length of the ruler in level-0 pixels; null if there is none. */
  rulerPx(): number | null {
    return this.measuring.rulerPx();
  }

  /** Space is held: the pointer pans, whatever the tool. */
  holdToPan(isHeld: boolean): void {
    this.isPanning = isHeld;
    this.setCursor(isHeld ? "grab" : this.idleCursor());
  }

  finish(): void {
    const isShort = this.current === "polygon" && (this.sketch?.outline().points.length ?? 3) < 3;
    if (isShort) this.emit("notice", "An outline has at least three points.");
    else if (this.sketch) this.draw?.finishDrawing();
    else if (this.current === "rectangle" || this.current === "ellipse") this.drawInMiddle(this.current);
    else if (this.current === "fixed") this.placeFixedSize(l0FromMap(this.map.getView().getCenter() ?? []));
    else if (this.current === "line") this.createRoi({ geometry: lineInView(this.extent()), shape: "line" });
    else if (this.current === "point" && !this.points.end()) this.points.add(l0FromMap(this.map.getView().getCenter() ?? []));
  }

  /** Create the ROI by keyboard, in the centre of the view, to be moved from there. */
  private drawInMiddle(tool: "rectangle" | "ellipse"): void {
    this.finishOutline(shapeInView(tool, this.extent()), tool, SHAPES[tool]);
  }

  private extent(): Extent {
    return this.map.getView().calculateExtent(this.map.getSize());
  }

  resume(outline: UnfinishedOutline): void {
    this.leave();
    this.use("polygon");
    this.resumed = outline;
    this.draw?.appendCoordinates(outline.points.map(mapFromL0));
  }

  stopDrawing(): UnfinishedOutline | null {
    const outline = this.sketch?.outline() ?? null;
    this.sketch = null;
    this.draw?.abortDrawing();
    return outline?.points.length ? outline : null;
  }

  /** Put an outline begun on another frame aside. */
  handleFrameChange(): void {
    if (this.sketch && this.sketch.frame?.pts !== this.context.frame()?.pts) this.leave();
  }

  /** Esc: first the sketch, then the selection or the tool. */
  cancel(): void {
    const cancelled = this.stopDrawing();
    if (cancelled) this.emit("cancelled", cancelled);
    else if (this.cancelStroke() || (this.current === "point" && this.points.end()) || this.measuring.clear()) return;
    else if (this.current !== "move") this.use("move");
    else this.layer.select(null);
  }

  /** Remove the last point of the sketch; true if there was one. */
  removeLastPoint(): boolean {
    if (!this.draw || !this.sketch || this.current !== "polygon") return false;
    this.draw.removeLastPoint();
    return true;
  }

  /** Make the brush larger or smaller. */
  resizeBrush(larger: boolean): void {
    if (this.activeInteraction instanceof Brush) this.activeInteraction.resize(larger);
  }

  private get draw(): Draw | null {
    return this.activeInteraction instanceof Draw ? this.activeInteraction : null;
  }

  private leave(): void {
    const left = this.stopDrawing();
    if (left) this.emit("left", left);
  }

  /** Abort a stroke or a line; returns whether one was under way. */
  private cancelStroke(): boolean {
    const { activeInteraction } = this;
    return (hasLayer(activeInteraction) || activeInteraction instanceof LineDrawing || activeInteraction instanceof Press) && activeInteraction.cancel();
  }

  /** Two fingers move the image, whatever the tool; what the first one began is dropped. */
  private switchToPan(isSeveral: boolean): void {
    if (isSeveral && this.activeInteraction instanceof LineDrawing) this.activeInteraction.interrupt();
    else if (isSeveral && !this.cancelStroke() && this.current !== "polygon") this.stopDrawing();
    if (this.activeInteraction && this.current !== "polygon") this.activeInteraction.setActive(!isSeveral);
  }

  private idleCursor(): string {
    return this.current === "move" ? "" : this.current === "brush" ? "none" : "crosshair";
  }

  private setCursor(cursor: string): void {
    const target = this.map.getTargetElement();
    if (target) target.style.cursor = cursor;
  }

  private createInteraction(tool: ToolName): Interaction | null {
    const isPanning = (): boolean => this.isPanning;
    const showNotice = (text: string): void => this.emit("notice", text);
    if (tool === "select") return boxSelect(this.layer, isPanning);
    if (tool === "search") return searchBoxInteraction(isPanning, (extent) => this.emit("search", extent));
    if (tool === "brush") return new Brush(this.map, this.painting, () => this.context.color(), isPanning, showNotice);
    if (tool === "wand") return new Wand(this.map, this.painting, this.context.color(), isPanning, showNotice);
    if (tool === "fixed" && this.context.fixedSizes) return new FixedSizeTool(this.map, this.context.fixedSizes, isPanning, (at) => this.placeFixedSize(at));
    if (tool === "point") return new Press(isPanning, (at) => this.points.add(at));
    if (tool === "frames") return new Press(isPanning, (at) => this.emit("point", { at, isFramesTool: true }));
    if (tool === "outline") return new Press(isPanning, () => undefined); // its clicks are the map's
    const onProgress = (placedCount: number): void => this.emit("step", placedCount);
    if (tool === "ruler" || tool === "angle") return this.measuring.drawing(tool, isPanning, { onProgress, onMeasured: (text) => this.emit("measured", text) });
    const line = { pointCount: 2, isPanning, onProgress };
    if (tool === "split") return new LineDrawing({ ...line, isFreehand: true, style: sketchStyle("#ffffff"), onDrawn: (drawn) => this.cut(drawn) });
    if (tool === "line") return new LineDrawing({ ...line, style: sketchStyle(this.context.color()), onDrawn: (drawn) => this.keepLine(drawn) });
    return isDrawTool(tool) ? this.newDraw(tool) : null;
  }

  /** Place the planned regions around a point, as one step of the history. */
  private placeFixedSize(at: Position): void {
    const planner = this.context.fixedSizes;
    const planned = planner?.plan(at) ?? [];
    const shortfall = planner?.shortfallText(planned.length);
    if (shortfall) this.emit("notice", shortfall);
    if (!planned.length) return;
    const [label, frame] = [this.context.label(), this.context.frame()];
    const fields = planned.map(({ geometry, size }) => ({ fields: { geometry, label, properties: propertiesOfSize(size) }, frame }));
    this.commands?.create(fields.length > 1 ? "Place fields" : "Place region", fields);
    queueMicrotask(() => this.use("move")); // as in createRoi
  }

  private cut(line: LineString): void {
    this.commands?.split(line.getCoordinates().map((at) => l0FromMap(at)));
  }

  private keepLine(line: LineString): void {
    this.createRoi({ geometry: geometryToL0(line), shape: "line" });
  }

  private newDraw(tool: DrawTool): Draw {
    const draw = drawInteraction(tool, this.context.color(), () => this.isPanning);
    draw.on("drawstart", ({ feature }) => {
      const options = { tool, frame: this.context.frame(), resumed: this.resumed };
      this.resumed = null;
      this.emit("step", 1);
      this.sketch = Sketch.begin(feature, options, (outline) => this.emit("drawn", outline));
    });
    draw.on("drawabort", () => this.endSketch());
    draw.on("drawend", (event) => {
      const begunWith = this.sketch?.tool ?? tool;
      const drawn = event.feature.getGeometry() as Polygon; // every tool draws one
      this.endSketch();
      if (!this.finishOutline(drawn, begunWith, SHAPES[tool])) this.refuse(drawn, tool);
    });
    return draw;
  }

  private endSketch(): void {
    if (this.sketch) this.emit("ended", this.sketch.id);
    this.sketch = null;
    this.emit("step", 0);
  }

  /** Returns whether it became a region. */
  private finishOutline(drawn: Polygon, tool: DrawTool, shape: RoiShape): boolean {
    const resolution = this.map.getView().getResolution() ?? 1;
    const geometry = drawnOutline(drawn, tool, resolution);
    if (!geometry) return false;
    this.createRoi({ geometry, shape });
    if (geometry.type === "MultiPolygon") {
      const count = geometry.coordinates.length;
      this.emit("notice", `The outline crosses itself, so it became one region of ${count} parts. Ctrl+Z undoes it.`);
    }
    return true;
  }

  /** Handle a discarded outline; one that was set point by point can be restored. */
  private refuse(drawn: Polygon, tool: DrawTool): void {
    if (tool !== "polygon") return this.emit("notice", "Too small to be a region, so nothing was drawn.");
    const points = (drawn.getCoordinates()[0] ?? []).slice(0, -1).map((at) => l0FromMap(at));
    this.emit("cancelled", newUnfinishedOutline({ points, tool, frame: this.context.frame() }));
    this.emit("notice", "Too small to be a region. Ctrl+Z brings the drawing back.");
  }

  private createRoi(made: Outline): void {
    const state = this.edits.create(made, this.context.label(), this.context.frame());
    this.layer.select(state.id);
    // after the click that ends the drawing, which would select what lies beneath; before the next key or press
    queueMicrotask(() => this.use("move"));
  }

  private addModify(): Modify {
    const modify = modifyInteraction(this.selected, () => this.isPanning);
    modify.on("modifystart", () => {
      this.layer.isModifying = true;
      this.snapping.exclude(this.selected.item(0));
    });
    modify.on("modifyend", () => this.finishModify());
    this.map.addInteraction(modify);
    this.map.addInteraction(this.snapping.interaction);
    return modify;
  }

  private finishModify(): void {
    this.layer.isModifying = false;
    const feature = this.selected.item(0) as RoiFeature | undefined;
    this.snapping.collect(feature);
    const state = feature && this.store.get(String(feature.getId()));
    if (!state) return;
    const geometry = geometryToL0(feature.getGeometry());
    if (sameGeometry(geometry, state.geometry)) return this.layer.refresh(state);
    feature.set("shown", geometry, true);
    const hadSize = FIXED_SIZE_KEY in state.properties;
    this.edits.change(state, { geometry }, "Edit outline");
    if (hadSize && !(FIXED_SIZE_KEY in state.properties)) this.emit("notice", "The region no longer has its fixed size. Ctrl+Z undoes it.");
  }

  private followSelection(): void {
    const state = this.store.get(this.layer.selectedId);
    const feature = state && hasVertices(state) ? this.layer.featureOf(state.id) : null;
    if (this.selected.item(0) === feature) return;
    this.selected.clear();
    if (feature) this.selected.push(feature);
    this.gatherSnapTargets();
  }

  private gatherSnapTargets(): void {
    if (this.canAnnotate) this.snapping.collect(this.selected.item(0));
  }

  private click(event: MapBrowserEvent): void {
    if (this.isPanning || !SELECTING_TOOLS.has(this.current)) return;
    if (altKeyOnly(event)) return; // removes a vertex
    if (this.layer.layer.getVisible()) {
      const roi = this.layer.at(event.coordinate, this.map.getView().getResolution() ?? 1);
      const isAdded = event.originalEvent.shiftKey;
      if (isAdded && roi) this.layer.toggleSelected(roi.id);
      else if (!isAdded) this.layer.select(roi?.id ?? null);
      if (roi || isAdded || this.current === "select") return;
    }
    this.emit("point", { at: l0FromMap(event.coordinate), isFramesTool: false });
  }

  private hover(event: MapBrowserEvent): void {
    if (!SELECTING_TOOLS.has(this.current) || this.isPanning || event.dragging) return;
    const roi = this.layer.layer.getVisible()
      ? this.layer.at(event.coordinate, this.map.getView().getResolution() ?? 1)
      : null;
    const isMovable = roi && this.layer.selectedIds.has(roi.id) && !roi.locked && this.isIdle();
    this.setCursor(isMovable ? "move" : roi ? "pointer" : this.idleCursor());
  }
}
