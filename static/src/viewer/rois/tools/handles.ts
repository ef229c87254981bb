/** Handles around what is selected: one that turns it, and for an ellipse those of its bounds. */

import Overlay from "ol/Overlay";
import type OlMap from "ol/Map";

import { element } from "../../../dom/elements";
import { geometryFromL0, l0FromMap, mapFromL0 } from "../../map/pixel_plane";
import type { RoiCommands } from "./commands";
import type { RoiEdits } from "../store/edits";
import type { RoiLayer } from "../rendering/roi_layer";
import { boundsOf, centreOf, ellipseIn, rotated } from "../shapes/outlines";
import type { Bounds } from "../shapes/outlines";
import type { RoiState } from "../store/roi_state";
import type { Position, RoiGeometry } from "../../lib/types";

/** The sides of the bounds that a handle moves: left or right, top or bottom. */
const SIDES = ["nw", "n", "ne", "e", "se", "s", "sw", "w"] as const;
type Side = (typeof SIDES)[number];
/** Distance of the rotation handle above the selection. */
const LIFT_SCREEN_PX = 26;
const SNAP_DEG = 15;
/** A click on the handle that moved by less turns nothing. */
const MIN_ROTATION_DEG = 0.2;

export class Handles {
  private readonly overlays: Overlay[] = [];
  private isDragged = false;

  constructor(
    private readonly map: OlMap,
    private readonly layer: RoiLayer,
    private readonly edits: RoiEdits,
    private readonly commands: RoiCommands,
    private readonly isIdle: () => boolean,
  ) {
    layer.on("selection", () => this.place());
    layer.on("select", () => this.place());
    map.getView().on("change:resolution", () => this.place());
  }

  /** Place the handles around the selection, except while one is dragged. */
  place(): void {
    if (this.isDragged) return;
    for (const overlay of this.overlays.splice(0)) this.map.removeOverlay(overlay);
    const states = this.layer.selection.filter((state) => !state.locked);
    if (!states.length || !this.isIdle() || this.layer.isModifying) return;
    const bounds = boundsOf(states.map((state) => state.geometry));
    const resolution = this.map.getView().getResolution() ?? 1;
    const [x] = centreOf(bounds);
    this.add([x, bounds[1] - LIFT_SCREEN_PX * resolution], "turn", "Turn (Shift: by 15°)", () => this.rotation(states, bounds));
    const [only] = states;
    if (states.length !== 1 || only?.shape !== "ellipse") return;
    for (const side of SIDES) this.add(placeOf(side, bounds), side, "Ellipse", () => this.resizeDrag(only, side, bounds));
  }

  private add(at: Position, name: string, title: string, begin: () => Drag): void {
    const handle = element("div", { class: `roi-handle roi-handle--${name}`, "data-handle": name, title });
    const overlay = new Overlay({ element: handle, position: mapFromL0(at), positioning: "center-center" });
    handle.addEventListener("pointerdown", (event) => this.drag(event, handle, begin()));
    this.overlays.push(overlay);
    this.map.addOverlay(overlay);
  }

  private drag(down: PointerEvent, handle: HTMLElement, drag: Drag): void {
    if (down.button !== 0) return;
    down.preventDefault();
    down.stopPropagation();
    handle.setPointerCapture(down.pointerId);
    this.isDragged = this.layer.isModifying = true;
    const ended = new AbortController();
    const { signal } = ended;
    const at = (event: PointerEvent): Position => l0FromMap(this.map.getEventCoordinate(event));
    const from = at(down);
    const move = (event: PointerEvent): void => drag.move(at(event), from, event.shiftKey);
    const end = (event: PointerEvent): void => {
      ended.abort();
      this.isDragged = this.layer.isModifying = false;
      drag.end(event.type === "pointerup");
      this.place();
    };
    handle.addEventListener("pointermove", move, { signal });
    for (const type of ["pointerup", "pointercancel", "lostpointercapture"] as const) {
      handle.addEventListener(type, end, { signal });
    }
  }

  private rotation(states: RoiState[], bounds: Bounds): Drag {
    const centre = centreOf(bounds);
    const angle = ([x, y]: Position): number => (Math.atan2(y - centre[1], x - centre[0]) * 180) / Math.PI;
    let degrees = 0;
    return {
      move: (at, from, isSnapped) => {
        degrees = angle(at) - angle(from);
        if (isSnapped) degrees = Math.round(degrees / SNAP_DEG) * SNAP_DEG;
        for (const state of states) this.preview(state, rotated(state.geometry, centre, (degrees * Math.PI) / 180));
      },
      end: (isMeant) => {
        for (const state of states) this.preview(state, state.geometry);
        if (isMeant && Math.abs(degrees) >= MIN_ROTATION_DEG) this.commands.rotate(degrees);
      },
    };
  }

  private resizeDrag(state: RoiState, side: Side, bounds: Bounds): Drag {
    let geometry = state.geometry;
    return {
      move: (at) => {
        geometry = ellipseIn(stretched(bounds, side, at));
        this.preview(state, geometry);
      },
      end: (isMeant) => {
        this.preview(state, state.geometry);
        if (isMeant && geometry !== state.geometry) this.edits.change(state, { geometry, shape: "ellipse" }, "Edit ellipse");
      },
    };
  }

  private preview(state: RoiState, geometry: RoiGeometry): void {
    this.layer.featureOf(state.id)?.setGeometry(geometryFromL0(geometry));
  }
}

interface Drag {
  move: (at: Position, from: Position, isSnapped: boolean) => void;
  end: (isMeant: boolean) => void;
}

function placeOf(side: Side, [left, top, right, bottom]: Bounds): Position {
  const x = side.includes("w") ? left : side.includes("e") ? right : (left + right) / 2;
  const y = side.startsWith("n") ? top : side.startsWith("s") ? bottom : (top + bottom) / 2;
  return [x, y];
}

/** The bounds with the sides of a handle moved to a point, the other sides where they are. */
export function stretched([left, top, right, bottom]: Bounds, side: Side, [x, y]: Position): Bounds {
  const [x0, x1] = [side.includes("w") ? x : left, side.includes("e") ? x : right];
  const [y0, y1] = [side.startsWith("n") ? y : top, side.startsWith("s") ? y : bottom];
  return [Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1)];
}
