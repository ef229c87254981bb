/** Straight lines drawn by a drag: one that is kept, and the knife. */

import Draw from "ol/interaction/Draw";
import LineString from "ol/geom/LineString";
import type { Extent } from "ol/extent";
import type { GeometryFunction } from "ol/interaction/Draw";

import { geometryToL0, l0FromMap } from "../../map/pixel_plane";
import { isPrimary } from "../sketch/drawing";
import { sketchStyle } from "../shown/style";
import type { LineGeometry, Position } from "../../lib/types";

/** Shorter is a slip of the hand. */
const SHORTEST_SCREEN_PX = 4;

/** From where the pointer went down to where it is. */
const straight: GeometryFunction = (coordinates, geometry) => {
  const points = coordinates as number[][];
  const [first = [0, 0], last = [0, 0]] = [points[0], points.at(-1)];
  if (!(geometry instanceof LineString)) return new LineString([first, last]);
  geometry.setCoordinates([first, last]);
  return geometry;
};

export function lineInteraction(color: string, isPanning: () => boolean, drawn: (line: LineGeometry | null) => void): Draw {
  const draw = dragged(color, isPanning, straight);
  draw.on("drawend", ({ feature, target }) => {
    const line = feature.getGeometry() as LineString;
    const resolution = (target as Draw).getMap()?.getView().getResolution() ?? 1;
    drawn(line.getLength() < SHORTEST_SCREEN_PX * resolution ? null : (geometryToL0(line) as LineGeometry));
  });
  return draw;
}

/** By the keyboard: across the middle of what is on screen. */
export function lineInView([left = 0, low = 0, right = 0, high = 0]: Extent): LineGeometry {
  const [x, y, reach] = [(left + right) / 2, (low + high) / 2, (right - left) / 6];
  return geometryToL0(new LineString([[x - reach, y], [x + reach, y]])) as LineGeometry;
}

/** A line dragged across what is selected. */
export function knifeInteraction(isPanning: () => boolean, cut: (line: Position[]) => void): Draw {
  const draw = dragged("#ffffff", isPanning);
  draw.on("drawend", ({ feature }) => {
    const line = feature.getGeometry();
    if (line instanceof LineString) cut(line.getCoordinates().map((at) => l0FromMap(at)));
  });
  return draw;
}

function dragged(color: string, isPanning: () => boolean, geometryFunction?: GeometryFunction): Draw {
  return new Draw({
    type: "LineString",
    condition: () => false,
    freehandCondition: (event) => !isPanning() && isPrimary(event),
    style: sketchStyle(color),
    ...(geometryFunction ? { geometryFunction } : {}),
  });
}
