/** What the pointer does: one tool is in hand at a time. Vertices of the selected ROI are moved with `move`. */

import Collection from "ol/Collection";
import { altKeyOnly } from "ol/events/condition";
import Draw from "ol/interaction/Draw";
import type Interaction from "ol/interaction/Interaction";
import type Modify from "ol/interaction/Modify";
import type OlMap from "ol/Map";
import type MapBrowserEvent from "ol/MapBrowserEvent";
import type Polygon from "ol/geom/Polygon";

import { Emitter } from "../../lib/events";
import { geometryToL0, l0FromMap, mapFromL0, sameGeometry } from "../../map/pixel_plane";
import { viewportOf } from "../../map/viewport";
import { boxSearch, boxSelect } from "./box_select";
import { Brush } from "./brush";
import type { RoiCommands } from "./commands";
import { SHAPES, drawInteraction, drawnInView, drawnOutline } from "../sketch/drawing";
import type { DrawContext, DrawTool } from "../sketch/drawing";
import type { Outline, RoiEdits } from "../saved/edits";
import { hasVertices } from "../shown/layer";
import type { RoiFeature, RoiLayer } from "../shown/layer";
import { Measuring } from "./measuring";
import { MoveRois } from "./move";
import type { OpenOutline } from "../sketch/open_outlines";
import { Painting } from "./painting";
import { knifeInteraction, lineInView, lineInteraction } from "./lines";
import { Points } from "./points";
import { modifyInteraction } from "./vertices";
import { Sketch } from "../sketch/sketch";
import { SnapTargets } from "./snapping";
import type { RoiStore } from "../saved/store";
import { FOR_ALL, SELECTING, isDrawTool } from "./tool_names";
import type { ToolName } from "./tool_names";
import { TouchCount, TwoFingerPan } from "./touches";
import type { Extent } from "ol/extent";
import type { LineGeometry, Position, RoiShape } from "../../lib/types";
import { Wand } from "./wand";

interface ToolEvents {
  tool: ToolName;
  notice: string;
  /** A point of the outline under the pen was set. */
  drawn: OpenOutline;
  /** The outline of this id is finished, or came to nothing. */
  ended: string;
  /** Esc while one was open. */
  cancelled: OpenOutline;
  /** Another tool or another frame while one was open. */
  left: OpenOutline;
  /** A click on no ROI, in level-0 pixels; `asked` if it was made with the tool that asks for frames. */
  point: { at: Position; asked: boolean };
  search: Extent; // a box, on the map
}

export class Tools extends Emitter<ToolEvents> {
  current: ToolName = "move";
  commands: RoiCommands | null = null; // set once the page has them
  private isPanning = false;
  private hand: Interaction | null = null;
  /** A line, ruler, angle or knife is being drawn. */
  private isMeasuring = false;
  private sketch: Sketch | null = null;
  private resumed: OpenOutline | null = null;
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
    private readonly context: DrawContext & { mpp: [number, number] | null },
    private readonly canAnnotate: boolean,
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
    new TouchCount(viewportOf(map), (isSeveral) => this.letMove(isSeveral));
    map.addInteraction(new TwoFingerPan(() => this.hand !== null));
  }

  /** True where a drag may move what is selected. */
  isIdle(): boolean {
    return this.current === "move" && !this.isPanning && this.canAnnotate;
  }

  use(tool: ToolName): void {
    if (!FOR_ALL.has(tool) && !this.canAnnotate) return;
    if (this.sketch && tool === this.current) return;
    this.leave();
    if (this.hand) this.map.removeInteraction(this.hand);
    if (this.hand instanceof Brush || this.hand instanceof Wand) this.hand.leave();
    this.map.removeInteraction(this.snapping.interaction);
    this.isMeasuring = false;
    this.hand = this.newHand(tool);
    if (isDrawTool(tool) || tool === "line" || tool === "point") this.layer.select(null);
    if (this.hand || tool === "point") {
      if (!this.layer.layer.getVisible()) this.layer.toggle("visible");
      if (this.hand) this.map.addInteraction(this.hand);
      this.gatherSnapTargets();
    }
    this.modify?.setActive(tool === "move");
    // after the others: it moves their points; those of strokes and boxes stay where the hand is
    if (this.canAnnotate && (this.draw || !this.hand)) this.map.addInteraction(this.snapping.interaction);
    this.current = tool;
    this.setCursor(this.idleCursor());
    this.emit("tool", tool);
  }

  /** How long the ruler's line is in level-0 pixels; null where none is drawn. */
  rulerPx(): number | null {
    return this.measuring.rulerPx();
  }

  /** Space is held: the pointer pans, whatever the tool. */
  holdToPan(held: boolean): void {
    this.isPanning = held;
    this.setCursor(held ? "grab" : this.idleCursor());
  }

  finish(): void {
    const isShort = this.current === "polygon" && (this.sketch?.outline().points.length ?? 3) < 3;
    if (isShort) this.emit("notice", "An outline has at least three points.");
    else if (this.sketch) this.draw?.finishDrawing();
    else if (this.current === "rectangle" || this.current === "ellipse") this.takeMiddle(this.current);
    else if (this.current === "line") this.keep({ geometry: lineInView(this.extent()), shape: "line" });
    else if (this.current === "point" && !this.points.end()) this.points.add(l0FromMap(this.map.getView().getCenter() ?? []));
  }

  /** By the keyboard: in the middle of what is on screen, to be moved from there. */
  private takeMiddle(tool: "rectangle" | "ellipse"): void {
    this.take(drawnInView(tool, this.extent()), tool, SHAPES[tool]);
  }

  private extent(): Extent {
    return this.map.getView().calculateExtent(this.map.getSize());
  }

  goOn(outline: OpenOutline): void {
    this.leave();
    this.use("polygon");
    this.resumed = outline;
    this.draw?.appendCoordinates(outline.points.map(mapFromL0));
  }

  lift(): OpenOutline | null {
    const outline = this.sketch?.outline() ?? null;
    this.sketch = null;
    this.draw?.abortDrawing();
    return outline?.points.length ? outline : null;
  }

  /** Another frame is on screen: what was begun stays on its own. */
  frameChanged(): void {
    if (this.sketch && this.sketch.frame?.pts !== this.context.frame()?.pts) this.leave();
  }

  /** Esc: first the sketch, then the selection or the tool. */
  cancel(): void {
    const cancelled = this.lift();
    if (cancelled) this.emit("cancelled", cancelled);
    else if (this.dropStroke() || (this.current === "point" && this.points.end()) || this.measuring.clear()) return;
    else if (this.current !== "move") this.use("move");
    else this.layer.select(null);
  }

  /** True where a point of the sketch was taken back. */
  removeLastPoint(): boolean {
    if (!this.draw || !this.sketch || this.current !== "polygon") return false;
    this.draw.removeLastPoint();
    return true;
  }

  /** The brush larger or smaller. */
  resizeBrush(larger: boolean): void {
    if (this.hand instanceof Brush) this.hand.resize(larger);
  }

  private get draw(): Draw | null {
    return this.hand instanceof Draw ? this.hand : null;
  }

  private leave(): void {
    const left = this.lift();
    if (left) this.emit("left", left);
  }

  /** True where a stroke, a line, a ruler or a knife was under way: what it would have done is not kept. */
  private dropStroke(): boolean {
    if (this.hand instanceof Brush || this.hand instanceof Wand) return this.hand.cancel();
    if (!this.isMeasuring) return false;
    this.draw?.abortDrawing();
    return true;
  }

  /** Two fingers move the image, whatever the tool; what the first one began is dropped. */
  private letMove(isSeveral: boolean): void {
    if (isSeveral && !this.dropStroke() && this.current !== "polygon") this.lift();
    if (this.hand && this.current !== "polygon") this.hand.setActive(!isSeveral);
  }

  private idleCursor(): string {
    return this.current === "move" ? "" : this.current === "brush" ? "none" : "crosshair";
  }

  private setCursor(cursor: string): void {
    const target = this.map.getTargetElement();
    if (target) target.style.cursor = cursor;
  }

  private newHand(tool: ToolName): Interaction | null {
    const isPanning = (): boolean => this.isPanning;
    const tell = (text: string): void => this.emit("notice", text);
    if (tool === "select") return boxSelect(this.layer, isPanning);
    if (tool === "search") return boxSearch(isPanning, (extent) => this.emit("search", extent));
    if (tool === "brush") return new Brush(this.map, this.painting, () => this.context.color(), isPanning, tell);
    if (tool === "wand") return new Wand(this.map, this.painting, this.context.color(), isPanning, tell);
    if (tool === "split") return this.watched(knifeInteraction(isPanning, (line) => this.commands?.split(line)));
    if (tool === "line") return this.watched(lineInteraction(this.context.color(), isPanning, (line) => this.takeLine(line)));
    if (tool === "ruler" || tool === "angle") return this.watched(this.measuring.interaction(tool, isPanning));
    return isDrawTool(tool) ? this.newDraw(tool) : null;
  }

  private watched(draw: Draw): Draw {
    const isDrawing = (now: boolean) => (): void => void (this.isMeasuring = now); // false would stop the event
    draw.on("drawstart", isDrawing(true));
    draw.on("drawabort", isDrawing(false));
    draw.on("drawend", isDrawing(false));
    return draw;
  }

  private newDraw(tool: DrawTool): Draw {
    const draw = drawInteraction(tool, this.context.color(), () => this.isPanning);
    draw.on("drawstart", ({ feature }) => {
      const given = { tool, frame: this.context.frame(), resumed: this.resumed };
      this.resumed = null;
      this.sketch = Sketch.begin(feature, given, (outline) => this.emit("drawn", outline));
    });
    draw.on("drawabort", () => this.ended());
    draw.on("drawend", (event) => {
      const begunWith = this.sketch?.tool ?? tool;
      this.ended();
      this.take(event.feature.getGeometry() as Polygon, begunWith, SHAPES[tool]); // every tool draws one
    });
    return draw;
  }

  private ended(): void {
    if (this.sketch) this.emit("ended", this.sketch.id);
    this.sketch = null;
  }

  private takeLine(geometry: LineGeometry | null): void {
    if (geometry) this.keep({ geometry, shape: "line" });
    else this.emit("notice", "Too short to be a line, so nothing was drawn.");
  }

  private take(drawn: Polygon, tool: DrawTool, shape: RoiShape): void {
    const resolution = this.map.getView().getResolution() ?? 1;
    const outline = drawnOutline(drawn, tool, resolution);
    if (!outline) {
      this.emit("notice", "Too small to be an ROI, so nothing was drawn.");
      return;
    }
    this.keep({ geometry: geometryToL0(outline), shape });
  }

  private keep(made: Outline): void {
    const state = this.edits.create(made, this.context.label(), this.context.frame());
    this.layer.select(state.id);
    // after the click that ends the drawing, which would select what lies beneath; before the next key or press
    queueMicrotask(() => this.use("move"));
  }

  private addModify(): Modify {
    const modify = modifyInteraction(this.selected, () => this.isPanning);
    modify.on("modifystart", () => {
      this.layer.isModifying = true;
      this.snapping.leaveOut(this.selected.item(0));
    });
    modify.on("modifyend", () => this.takeModified());
    this.map.addInteraction(modify);
    this.map.addInteraction(this.snapping.interaction);
    return modify;
  }

  private takeModified(): void {
    this.layer.isModifying = false;
    const feature = this.selected.item(0) as RoiFeature | undefined;
    this.snapping.gather(feature);
    const state = feature && this.store.get(String(feature.getId()));
    if (!state) return;
    const geometry = geometryToL0(feature.getGeometry());
    if (sameGeometry(geometry, state.geometry)) return this.layer.refresh(state);
    feature.set("shown", geometry, true);
    this.edits.change(state, { geometry }, "Edit outline");
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
    if (this.canAnnotate) this.snapping.gather(this.selected.item(0));
  }

  private click(event: MapBrowserEvent): void {
    if (this.current === "point" && !this.isPanning) return this.points.add(l0FromMap(event.coordinate));
    const asked = this.current === "frames";
    if (this.isPanning || (!SELECTING.has(this.current) && !asked)) return;
    if (altKeyOnly(event)) return; // removes a vertex
    if (!asked && this.layer.layer.getVisible()) {
      const found = this.layer.at(event.coordinate, this.map.getView().getResolution() ?? 1);
      const isAdded = event.originalEvent.shiftKey;
      if (isAdded && found) this.layer.toggleChosen(found.id);
      else if (!isAdded) this.layer.select(found?.id ?? null);
      if (found || isAdded || this.current === "select") return;
    }
    this.emit("point", { at: l0FromMap(event.coordinate), asked });
  }

  private hover(event: MapBrowserEvent): void {
    if (!SELECTING.has(this.current) || this.isPanning || event.dragging) return;
    const found = this.layer.layer.getVisible()
      ? this.layer.at(event.coordinate, this.map.getView().getResolution() ?? 1)
      : null;
    const isMovable = found && this.layer.chosen.has(found.id) && !found.locked && this.isIdle();
    this.setCursor(isMovable ? "move" : found ? "pointer" : this.idleCursor());
  }
}
