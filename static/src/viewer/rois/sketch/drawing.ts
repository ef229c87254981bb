/** Drawing an ROI: what the pointer does with each tool, and what comes of the line it drew. */

import { primaryAction } from "ol/events/condition";
import Draw, { createBox } from "ol/interaction/Draw";
import type { GeometryFunction } from "ol/interaction/Draw";
import type MapBrowserEvent from "ol/MapBrowserEvent";
import Polygon, { fromExtent } from "ol/geom/Polygon";
import type { Extent } from "ol/extent";

import { boundsFromExtent, geometryFromL0, l0FromMap } from "../../map/pixel_plane";
import type { FrameRef, RoiGeometry, RoiShape } from "../../lib/types";
import { boundsOf, ellipseIn } from "../shapes/outlines";
import { sketchStyle } from "../shown/style";

export type DrawTool = "rectangle" | "ellipse" | "polygon" | "freehand";

export const SHAPES: Record<DrawTool, RoiShape> = {
  rectangle: "polygon",
  ellipse: "ellipse",
  polygon: "polygon",
  freehand: "polygon",
};

/** What the next ROI is made with. */
export interface DrawContext {
  label: () => string | null;
  color: () => string;
  frame: () => FrameRef | null;
}

/** 4 x 4 screen pixels: less is a slip of the hand, not a region. */
const SMALLEST_DRAWN_SCREEN_PX2 = 16;
/** The grid to which a freehand line is rounded: too fine to be seen, and duplicate points are dropped. */
const FREEHAND_GRID_SCREEN_PX = 0.6;

/** The interaction of a tool. While `isPanning` the pointer moves the map instead. */
export function drawInteraction(tool: DrawTool, color: string, isPanning: () => boolean): Draw {
  const isDragged = tool !== "polygon";
  return new Draw({
    type: tool === "rectangle" || tool === "ellipse" ? "Circle" : "Polygon",
    ...(tool === "rectangle" ? { geometryFunction: createBox() } : {}),
    ...(tool === "ellipse" ? { geometryFunction: ellipseBetween } : {}),
    condition: (event) => !isPanning() && !isDragged && primaryAction(event),
    freehandCondition: (event) => isDragged && !isPanning() && isPrimary(event),
    style: sketchStyle(color),
    stopClick: true,
  });
}

/** The ellipse in the box between two corners. */
const ellipseBetween: GeometryFunction = (coordinates, geometry) => {
  const ring = (coordinates as number[][]).map((at) => l0FromMap(at));
  const rings = ringsOnMap(ellipseIn(boundsOf([{ type: "Polygon", coordinates: [ring] }])));
  if (!(geometry instanceof Polygon)) return new Polygon(rings);
  geometry.setCoordinates(rings);
  return geometry;
};

/** A third of the view wide and high, in its middle. */
export function drawnInView(tool: "rectangle" | "ellipse", [left = 0, low = 0, right = 0, high = 0]: Extent): Polygon {
  const [x, y, width, height] = [(left + right) / 2, (low + high) / 2, (right - left) / 6, (high - low) / 6];
  const box: Extent = [x - width, y - height, x + width, y + height];
  return tool === "rectangle" ? fromExtent(box) : new Polygon(ringsOnMap(ellipseIn(boundsFromExtent(box))));
}

function ringsOnMap(outline: RoiGeometry): number[][][] {
  const polygon = geometryFromL0(outline);
  return polygon instanceof Polygon ? polygon.getCoordinates() : [];
}

/** The outline to keep of what was drawn; null where it is too small to be meant. */
export function drawnOutline(drawn: Polygon, tool: DrawTool, resolution: number): Polygon | null {
  const outline = tool === "freehand" ? thinned(drawn, FREEHAND_GRID_SCREEN_PX * resolution) : drawn;
  return outline.getArea() < SMALLEST_DRAWN_SCREEN_PX2 * resolution * resolution ? null : outline;
}

function thinned(drawn: Polygon, gridPx: number): Polygon {
  const simple = drawn.simplify(gridPx); // for a polygon, OpenLayers rounds the points to a grid
  return simple instanceof Polygon && simple.getArea() > 0 ? simple : drawn;
}

/** With the first finger, the pen or the main button, while it is held as well. */
export function isPrimary(event: MapBrowserEvent): boolean {
  if ((event.activePointers?.length ?? 1) > 1) return false; // two fingers move the image
  const original = event.originalEvent;
  if (!(original instanceof PointerEvent)) return true;
  return original.buttons === 0 || (original.buttons & 1) === 1;
}
