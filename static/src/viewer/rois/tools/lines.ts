/** The line that the keyboard draws. */

import LineString from "ol/geom/LineString";
import type { Extent } from "ol/extent";

import { geometryToL0 } from "../../map/pixel_plane";
import type { LineGeometry } from "../../lib/types";

/** Across the middle of what is on screen. */
export function lineInView([left = 0, low = 0, right = 0, high = 0]: Extent): LineGeometry {
  const [x, y, reach] = [(left + right) / 2, (low + high) / 2, (right - left) / 6];
  return geometryToL0(new LineString([[x - reach, y], [x + reach, y]])) as LineGeometry;
}
