/** A small drawing of what a document would bring, over the image. */

import type { ImportOutline } from "../store/imports";
import type { CanvasData } from "../../lib/types";

const SVG = "http://www.w3.org/2000/svg";

/** The `d` of a path of rings that give x and y in turn. */
export function pathOfFlat(rings: number[][]): string {
  return rings
    .map((ring) => {
      const points: string[] = [];
      for (let i = 0; i + 1 < ring.length; i += 2) points.push(`${ring[i] ?? 0} ${ring[i + 1] ?? 0}`);
      return `M${points.join("L")}Z`;
    })
    .join("");
}

/** Draw one path for each colour, so that a thousand outlines need few elements. */
export function importPreview(
  canvas: CanvasData,
  outlines: ImportOutline[],
  colorOf: (name: string) => string,
): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${canvas.width} ${canvas.height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Where ${outlines.length} of the outlines would lie`);
  if (canvas.thumbnail_url) {
    const image = document.createElementNS(SVG, "image");
    image.setAttribute("href", canvas.thumbnail_url);
    image.setAttribute("width", String(canvas.width));
    image.setAttribute("height", String(canvas.height));
    image.setAttribute("preserveAspectRatio", "none");
    svg.append(image);
  }
  const byColor = new Map<string, string[]>();
  for (const outline of outlines) {
    const color = colorOf(outline.class);
    byColor.set(color, [...(byColor.get(color) ?? []), pathOfFlat(outline.rings)]);
  }
  for (const [color, paths] of byColor) {
    for (const name of ["import-casing", "import-line"]) {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", paths.join(""));
      path.setAttribute("class", name);
      if (name === "import-line") path.style.setProperty("stroke", color);
      svg.append(path);
    }
  }
  return svg;
}
