/** A small drawing of an outline, over the one before it where it was changed. */

import type { Position, RoiGeometry } from "../../lib/types";
import { boundsOf, centreOf, isArea, shapeOf, verticesOf } from "../shapes/outlines";

const SVG = "http://www.w3.org/2000/svg";
/** Room for the line at the edge, as a share of the longer side. */
const MARGIN = 0.08;

/** A point is drawn as a small cross; each arm is this share of the longer side. */
const CROSS = 0.03;

function linesOf(geometry: RoiGeometry): Position[][] {
  if (geometry.type === "LineString") return [geometry.coordinates];
  return geometry.type === "MultiLineString" ? geometry.coordinates : [];
}

function crossAt([x, y]: Position, reach: number): string {
  return `M${x - reach} ${y}L${x + reach} ${y}M${x} ${y - reach}L${x} ${y + reach}`;
}

/** The `d` of an SVG path in level-0 pixels. */
export function pathOf(geometry: RoiGeometry): string {
  const linePath = (points: Position[]): string => `M${points.map(([x, y]) => `${x} ${y}`).join("L")}`;
  if (shapeOf(geometry) === "point") return verticesOf(geometry).map((at) => crossAt(at, CROSS * sideOf([geometry]))).join("");
  if (!isArea(geometry)) return linesOf(geometry).map(linePath).join("");
  const rings = geometry.type === "Polygon" ? geometry.coordinates : geometry.coordinates.flat();
  return rings.map((ring) => `${linePath(ring)}Z`).join("");
}

/** The square `viewBox` around all of these. */
export function viewBoxOf(geometries: RoiGeometry[]): string {
  const side = sideOf(geometries);
  const [middleX, middleY] = centreOf(boundsOf(geometries));
  const [x, y] = [middleX - side / 2, middleY - side / 2];
  return [x, y, side, side].map((value) => Number(value.toFixed(2))).join(" ");
}

/** Side of the square around these geometries. */
function sideOf(geometries: RoiGeometry[]): number {
  const [left, top, right, bottom] = boundsOf(geometries);
  return Math.max(right - left, bottom - top, 1) * (1 + 2 * MARGIN);
}

/** `before` is left out where nothing of the outline changed. */
export function outlinePreview(geometry: RoiGeometry, color: string, before: RoiGeometry | null): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", viewBoxOf(before ? [geometry, before] : [geometry]));
  svg.setAttribute("class", "roi-preview");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", before ? "The outline, and the one before it dashed" : "The outline");
  const draw = (shape: RoiGeometry, name: string): SVGPathElement => {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", pathOf(shape));
    path.setAttribute("class", name);
    return path;
  };
  if (before) svg.append(draw(before, "roi-preview-before"));
  const now = draw(geometry, "roi-preview-now");
  now.style.setProperty("stroke", color);
  now.style.setProperty("fill", color);
  svg.append(now);
  return svg;
}
