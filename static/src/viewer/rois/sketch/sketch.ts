/** The outline under the pen: which of its points are set, and when one more is. */

import type Feature from "ol/Feature";
import Polygon from "ol/geom/Polygon";

import { l0FromMap } from "../../map/pixel_plane";
import { inHundredths } from "../../lib/units";
import type { FrameRef, Position } from "../../lib/types";
import type { DrawTool } from "./drawing";
import { openOutline } from "./open_outlines";
import type { OpenOutline } from "./open_outlines";

/** A freehand line gains points with every move: it is reported again after this many. */
const FREEHAND_POINTS_AT_ONCE = 50;

/** The set points of a sketched ring: without the closing one, and without the pointer's of a polygon. */
export function setPoints(ring: number[][], tool: DrawTool): Position[] {
  const open = ring.slice(0, tool === "polygon" ? -2 : -1);
  return open.map((point) => inHundredths(l0FromMap(point)));
}

export class Sketch {
  private told = 0;

  private constructor(
    private readonly polygon: Polygon,
    private readonly drawnWith: DrawTool,
    private readonly begun: OpenOutline,
  ) {}

  /** `resumed` is the outline to go on with; `onPoint` is called as points are set. */
  static begin(
    feature: Feature,
    given: { tool: DrawTool; frame: FrameRef | null; resumed: OpenOutline | null },
    onPoint: (outline: OpenOutline) => void,
  ): Sketch | null {
    const polygon = feature.getGeometry();
    if (!(polygon instanceof Polygon)) return null;
    const begun = given.resumed ?? openOutline({ points: [], tool: given.tool, frame: given.frame });
    const sketch = new Sketch(polygon, given.tool, begun);
    const atOnce = given.tool === "polygon" ? 1 : FREEHAND_POINTS_AT_ONCE;
    polygon.on("change", () => {
      const count = polygon.getCoordinates()[0]?.length ?? 0;
      if (Math.abs(count - sketch.told) < atOnce) return;
      sketch.told = count;
      onPoint(sketch.outline());
    });
    return sketch;
  }

  get id(): string {
    return this.begun.id;
  }

  get frame(): FrameRef | null {
    return this.begun.frame;
  }

  /** The tool that the outline was begun with. */
  get tool(): DrawTool {
    return this.begun.tool;
  }

  outline(): OpenOutline {
    return { ...this.begun, points: setPoints(this.polygon.getCoordinates()[0] ?? [], this.drawnWith) };
  }
}
