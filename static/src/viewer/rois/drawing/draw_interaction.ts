/** Drawing of ROIs: the interaction of each tool, and the outline from the drawn line. */

import { primaryAction } from "ol/events/condition";
import Draw, { createBox } from "ol/interaction/Draw";
import type { GeometryFunction } from "ol/interaction/Draw";
import type MapBrowserEvent from "ol/MapBrowserEvent";
import Polygon, { fromExtent } from "ol/geom/Polygon";
import type { Extent } from "ol/extent";

import { boundsFromExtent, geometryFromL0, geometryToL0, l0FromMap } from "../../map/pixel_plane";
import type { AreaGeometry, FrameRef, PolygonGeometry, RoiGeometry, RoiShape } from "../../lib/types";
import { uncrossed } from "../shapes/areas";
import { boundsOf, ellipseIn } from "../shapes/outlines";
import { sketchStyle } from "../rendering/styles";

export type DrawTool = "rectangle" | "ellipse" | "polygon" | "freehand";

export const SHAPES: Record<DrawTool, RoiShape> = {
  rectangle: "polygon",
  ellipse: "ellipse",
  polygon: "polygon",
  freehand: "polygon",
};

/** Properties of the next ROI. */
export interface DrawContext {
  label: () => string | null;
  color: () => string;
  frame: () => FrameRef | null;
}

/** Smallest drawn area: 4 x 4 screen pixels. */
const SMALLEST_DRAWN_SCREEN_PX2 = 16;
/** Grid to which freehand lines are rounded; duplicate points are dropped. */
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
    dragVertexDelay: 0, // a corner is where the pointer is released; the image stays
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
export function shapeInView(tool: "rectangle" | "ellipse", [left = 0, low = 0, right = 0, high = 0]: Extent): Polygon {
  const [x, y, width, height] = [(left + right) / 2, (low + high) / 2, (right - left) / 6, (high - low) / 6];
  const box: Extent = [x - width, y - height, x + width, y + height];
  return tool === "rectangle" ? fromExtent(box) : new Polygon(ringsOnMap(ellipseIn(boundsFromExtent(box))));
}

function ringsOnMap(outline: RoiGeometry): number[][][] {
  const polygon = geometryFromL0(outline);
  return polygon instanceof Polygon ? polygon.getCoordinates() : [];
}

/** The outline to keep of what was drawn, in parts if it crosses itself; null if it is too small to be meant. */
export function drawnOutline(drawn: Polygon, tool: DrawTool, resolution: number): AreaGeometry | null {
  const outline = tool === "freehand" ? simplifyOnGrid(drawn, FREEHAND_GRID_SCREEN_PX * resolution) : drawn;
  const leastPx2 = SMALLEST_DRAWN_SCREEN_PX2 * resolution * resolution;
  const geometry = geometryToL0(outline) as PolygonGeometry;
  const parts = uncrossed(geometry.coordinates[0] ?? [], leastPx2);
  if (parts) return parts;
  return outline.getArea() < leastPx2 ? null : geometry;
}

function simplifyOnGrid(drawn: Polygon, gridPx: number): Polygon {
  const simple = drawn.simplify(gridPx); // for a polygon, OpenLayers rounds the points to a grid
  return simple instanceof Polygon && simple.getArea() > 0 ? simple : drawn;
}

/** Whether an event comes from the first finger, the pen or the main button, pressed or held. */
export function isPrimary(event: MapBrowserEvent): boolean {
  if ((event.activePointers?.length ?? 1) > 1) return false; // two fingers move the image
  const original = event.originalEvent;
  if (!(original instanceof PointerEvent)) return true;
  return original.buttons === 0 || (original.buttons & 1) === 1;
}
