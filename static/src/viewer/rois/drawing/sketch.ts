/** The outline under the pen: which of its points are set, and when one more is. */

import type Feature from "ol/Feature";
import Polygon from "ol/geom/Polygon";

import { l0FromMap } from "../../map/pixel_plane";
import { inHundredths } from "../../lib/units";
import type { FrameRef, Position } from "../../lib/types";
import type { DrawTool } from "./draw_interaction";
import { newUnfinishedOutline } from "./unfinished_outlines";
import type { UnfinishedOutline } from "./unfinished_outlines";

/** A freehand line gains points with every move: it is reported again after this many. */
const FREEHAND_POINTS_AT_ONCE = 50;

/** The set points of a sketched ring: without the closing one, and without the pointer's of a polygon. */
export function setPoints(ring: number[][], tool: DrawTool): Position[] {
  const open = ring.slice(0, tool === "polygon" ? -2 : -1);
  return open.map((point) => inHundredths(l0FromMap(point)));
}

export class Sketch {
  private onProgress = 0;

  private constructor(
    private readonly polygon: Polygon,
    private readonly currentTool: DrawTool,
    private readonly initial: UnfinishedOutline,
  ) {}

  /** `resumed` is the outline to go on with; `onPoint` is called as points are set. */
  static begin(
    feature: Feature,
    options: { tool: DrawTool; frame: FrameRef | null; resumed: UnfinishedOutline | null },
    onPoint: (outline: UnfinishedOutline) => void,
  ): Sketch | null {
    const polygon = feature.getGeometry();
    if (!(polygon instanceof Polygon)) return null;
    const initial = options.resumed ?? newUnfinishedOutline({ points: [], tool: options.tool, frame: options.frame });
    const sketch = new Sketch(polygon, options.tool, initial);
    const atOnce = options.tool === "polygon" ? 1 : FREEHAND_POINTS_AT_ONCE;
    polygon.on("change", () => {
      const count = polygon.getCoordinates()[0]?.length ?? 0;
      if (Math.abs(count - sketch.onProgress) < atOnce) return;
      sketch.onProgress = count;
      onPoint(sketch.outline());
    });
    return sketch;
  }

  get id(): string {
    return this.initial.id;
  }

  get frame(): FrameRef | null {
    return this.initial.frame;
  }

  /** The tool that the outline was begun with. */
  get tool(): DrawTool {
    return this.initial.tool;
  }

  outline(): UnfinishedOutline {
    return { ...this.initial, points: setPoints(this.polygon.getCoordinates()[0] ?? [], this.currentTool) };
  }
}
