/** A small drawing of an outline, over the one before it where it was changed. */

import type { Position, RoiGeometry } from "../../lib/types";

const SVG = "http://www.w3.org/2000/svg";
/** Room for the line at the edge, of the longer side. */
const MARGIN = 0.08;

function rings(geometry: RoiGeometry): Position[][] {
  return geometry.type === "Polygon" ? geometry.coordinates : geometry.coordinates.flat();
}

/** The `d` of an SVG path in level-0 pixels. */
export function pathOf(geometry: RoiGeometry): string {
  return rings(geometry)
    .map((ring) => `M${ring.map(([x, y]) => `${x} ${y}`).join("L")}Z`)
    .join("");
}

/** The square `viewBox` around all of these. */
export function viewBoxOf(geometries: RoiGeometry[]): string {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of geometries.flatMap(rings).flat()) {
    [left, right] = [Math.min(left, x), Math.max(right, x)];
    [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
  }
  const side = Math.max(right - left, bottom - top, 1) * (1 + 2 * MARGIN);
  const [x, y] = [(left + right - side) / 2, (top + bottom - side) / 2];
  return [x, y, side, side].map((value) => Number(value.toFixed(2))).join(" ");
}

/** `before` is left out where nothing of the outline changed. */
export function preview(geometry: RoiGeometry, color: string, before: RoiGeometry | null): SVGSVGElement {
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
