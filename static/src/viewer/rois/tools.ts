/** What the pointer does: move, ask for frames, rectangle, polygon, freehand; vertices of the selected ROI. */

import Collection from "ol/Collection";
import { altKeyOnly, primaryAction, singleClick } from "ol/events/condition";
import type Draw from "ol/interaction/Draw";
import Modify from "ol/interaction/Modify";
import type OlMap from "ol/Map";
import type MapBrowserEvent from "ol/MapBrowserEvent";
import type Polygon from "ol/geom/Polygon";

import { Emitter } from "../lib/events";
import { geometryToL0, l0FromMap, mapFromL0, sameGeometry } from "../map/pixel_plane";
import { drawInteraction, drawnOutline } from "./drawing";
import type { DrawTool } from "./drawing";
import type { OpenOutline } from "./open_outlines";
import type { RoiEdits } from "./edits";
import type { RoiFeature, RoiLayer } from "./layer";
import { Sketch } from "./sketch";
import { SnapTargets } from "./snapping";
import { sketchStyle } from "./style";
import type { RoiStore } from "./store";
import type { FrameRef, Position } from "../lib/types";

export type ToolName = "move" | "frames" | DrawTool;
export interface DrawContext {
  label: () => string | null;
  color: () => string;
  frame: () => FrameRef | null;
}

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
}

export class Tools extends Emitter<ToolEvents> {
  current: ToolName = "move";
  private isPanning = false;
  private draw: Draw | null = null;
  private sketch: Sketch | null = null;
  private resumed: OpenOutline | null = null;
  private readonly selected = new Collection<RoiFeature>();
  private readonly modify: Modify | null;
  private readonly snapping: SnapTargets;

  constructor(
    private readonly map: OlMap,
    private readonly store: RoiStore,
    private readonly edits: RoiEdits,
    private readonly layer: RoiLayer,
    private readonly context: DrawContext,
    private readonly canAnnotate: boolean,
  ) {
    super();
    this.snapping = new SnapTargets(map, layer.source);
    this.modify = canAnnotate ? this.addModify() : null;
    layer.isEditable = canAnnotate;
    layer.on("select", () => this.followSelection());
    map.on("click", (event) => this.click(event));
    map.on("moveend", () => this.gatherSnapTargets());
    map.on("pointermove", (event) => this.hover(event));
  }

  use(tool: ToolName): void {
    if (isDrawTool(tool) && !this.canAnnotate) return;
    if (this.sketch && tool === this.current) return;
    this.leave();
    if (this.draw) this.map.removeInteraction(this.draw);
    this.map.removeInteraction(this.snapping.interaction);
    this.draw = isDrawTool(tool) ? this.newDraw(tool) : null;
    if (this.draw) {
      this.layer.select(null);
      if (!this.layer.layer.getVisible()) this.layer.toggle("visible");
      this.map.addInteraction(this.draw);
      this.gatherSnapTargets();
    }
    this.modify?.setActive(tool === "move");
    if (this.canAnnotate) this.map.addInteraction(this.snapping.interaction); // after the others: it moves their points
    this.current = tool;
    this.setCursor(tool === "move" ? "" : "crosshair");
    this.emit("tool", tool);
  }

  /** Space is held: the pointer pans, whatever the tool. */
  holdToPan(held: boolean): void {
    this.isPanning = held;
    const idle = this.current === "move" ? "" : "crosshair";
    this.setCursor(held ? "grab" : idle);
  }

  finish(): void {
    const isShort = this.current === "polygon" && (this.sketch?.outline().points.length ?? 3) < 3;
    if (isShort) this.emit("notice", "An outline has at least three points.");
    else if (this.sketch) this.draw?.finishDrawing();
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

  private leave(): void {
    const left = this.lift();
    if (left) this.emit("left", left);
  }

  /** Esc: first the sketch, then the selection or the tool. */
  cancel(): void {
    const cancelled = this.lift();
    if (cancelled) this.emit("cancelled", cancelled);
    else if (this.current !== "move") this.use("move");
    else this.layer.select(null);
  }

  /** True where there was a point of the sketch to take back. */
  removeLastPoint(): boolean {
    if (!this.draw || !this.sketch || this.current !== "polygon") return false;
    this.draw.removeLastPoint();
    return true;
  }

  deleteSelected(): boolean {
    const state = this.store.get(this.layer.selectedId);
    if (!state || !this.canAnnotate) return false;
    this.edits.remove(state);
    return true;
  }

  private setCursor(cursor: string): void {
    const target = this.map.getTargetElement();
    if (target) target.style.cursor = cursor;
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
      const drawnWith = this.sketch?.tool ?? tool;
      this.ended();
      this.take(event.feature.getGeometry() as Polygon, drawnWith); // every tool draws one
    });
    return draw;
  }

  private ended(): void {
    if (this.sketch) this.emit("ended", this.sketch.id);
    this.sketch = null;
  }

  private take(drawn: Polygon, tool: DrawTool): void {
    const resolution = this.map.getView().getResolution() ?? 1;
    const outline = drawnOutline(drawn, tool, resolution);
    if (!outline) {
      this.emit("notice", "Too small to be an ROI: nothing was drawn.");
      return;
    }
    const state = this.edits.create(geometryToL0(outline), this.context.label(), this.context.frame());
    this.layer.select(state.id);
    // after the click that ends the drawing, or that click would select what lies beneath
    setTimeout(() => this.use("move"));
  }

  private addModify(): Modify {
    const modify = new Modify({
      features: this.selected,
      pixelTolerance: 8,
      condition: (event) => !this.isPanning && primaryAction(event),
      deleteCondition: (event) => altKeyOnly(event) && singleClick(event),
      style: sketchStyle("#ffffff"),
    });
    modify.on("modifystart", () => (this.layer.isModifying = true));
    modify.on("modifyend", () => {
      this.layer.isModifying = false;
      this.takeModified();
    });
    this.map.addInteraction(modify);
    this.map.addInteraction(this.snapping.interaction);
    return modify;
  }

  private takeModified(): void {
    const feature = this.selected.item(0) as RoiFeature | undefined;
    const state = feature && this.store.get(String(feature.getId()));
    if (!feature || !state) return;
    const geometry = geometryToL0(feature.getGeometry());
    if (sameGeometry(geometry, state.geometry)) return;
    feature.set("shown", geometry, true);
    this.edits.change(state, { geometry }, "Edit outline");
  }

  private followSelection(): void {
    const feature = this.layer.featureOf(this.layer.selectedId);
    if (this.selected.item(0) === feature) return;
    this.selected.clear();
    if (feature) this.selected.push(feature);
    this.gatherSnapTargets();
  }

  private gatherSnapTargets(): void {
    if (this.canAnnotate) this.snapping.gather(this.selected.item(0));
  }

  private click(event: MapBrowserEvent): void {
    const asked = this.current === "frames";
    if (this.isPanning || (this.current !== "move" && !asked)) return;
    if (altKeyOnly(event)) return; // removes a vertex
    if (!asked && this.layer.layer.getVisible()) {
      const found = this.layer.at(event.coordinate, this.map.getView().getResolution() ?? 1);
      this.layer.select(found?.id ?? null);
      if (found) return;
    }
    this.emit("point", { at: l0FromMap(event.coordinate), asked });
  }

  private hover(event: MapBrowserEvent): void {
    if (this.current !== "move" || this.isPanning || event.dragging) return;
    const isOver =
      this.layer.layer.getVisible() &&
      this.layer.at(event.coordinate, this.map.getView().getResolution() ?? 1) !== null;
    this.setCursor(isOver ? "pointer" : "");
  }
}

function isDrawTool(tool: ToolName): tool is DrawTool {
  return tool !== "move" && tool !== "frames";
}
