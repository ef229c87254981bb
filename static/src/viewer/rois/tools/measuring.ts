/** Rulers and angles: drawn over the image, not stored. */

import Feature from "ol/Feature";
import LineString from "ol/geom/LineString";
import Point from "ol/geom/Point";
import VectorLayer from "ol/layer/Vector";
import type OlMap from "ol/Map";
import VectorSource from "ol/source/Vector";
import type Style from "ol/style/Style";
import type { FeatureLike } from "ol/Feature";

import { lengthText } from "../../lib/units";
import { l0FromMap } from "../../map/pixel_plane";
import { LineDrawing } from "./line_drawing";
import { nameStyle, sketchStyle } from "../rendering/styles";
import type { Position } from "../../lib/types";

export type MeasureTool = "ruler" | "angle";

const COLOR = "#ffd400"; // neither tissue nor a label

export class Measuring {
  private readonly source = new VectorSource<Feature<LineString>>();

  constructor(
    map: OlMap,
    private readonly mpp: [number, number] | null,
  ) {
    const style = (feature: FeatureLike): Style[] => this.styleOf(feature);
    map.addLayer(new VectorLayer({ source: this.source, style, className: "canvas-measures" }));
  }

  /** Two points make a ruler, three an angle; the previous measure is removed. */
  drawing(
    tool: MeasureTool,
    isPanning: () => boolean,
    { onProgress, onMeasured }: { onProgress: (placedCount: number) => void; onMeasured: (text: string) => void },
  ): LineDrawing {
    return new LineDrawing({
      ...{ pointCount: tool === "ruler" ? 2 : 3, isPanning, style: (feature) => this.styleOf(feature) },
      onProgress: (placedCount) => {
        if (placedCount) this.source.clear();
        onProgress(placedCount);
      },
      onDrawn: (line) => {
        this.source.addFeature(new Feature(line));
        onMeasured(this.textOf(line));
      },
    });
  }

  /** Remove the measure; true if there was one. */
  clear(): boolean {
    const isAny = this.source.getFeatures().length > 0;
    this.source.clear();
    return isAny;
  }

  /** Length of the ruler's line in level-0 pixels; null if there is none. */
  rulerPx(): number | null {
    const points = this.source.getFeatures()[0]?.getGeometry()?.getCoordinates().map((at) => l0FromMap(at));
    const [a, b, c] = points ?? [];
    return a && b && !c ? Math.hypot(b[0] - a[0], b[1] - a[1]) || null : null;
  }

  private textOf(line: LineString): string {
    return measureText(line.getCoordinates().map((at) => l0FromMap(at)), this.mpp);
  }

  private styleOf(feature: FeatureLike): Style[] {
    const geometry = feature.getGeometry();
    const styles = sketchStyle(COLOR);
    if (!(geometry instanceof LineString) || geometry.getFlatCoordinates().length === 0) return styles;
    const text = this.textOf(geometry);
    const label = nameStyle(text).clone();
    label.setGeometry(new Point(geometry.getLastCoordinate()));
    label.getText()?.setOffsetY(-18);
    return text ? [...styles, label] : styles;
  }
}

/** A length of two points, or the angle at the middle one of three. */
export function measureText(points: Position[], mpp: [number, number] | null): string {
  const [a, b, c] = points.map(([x, y]): Position => (mpp ? [x * mpp[0], y * mpp[1]] : [x, y]));
  if (!a || !b) return "";
  if (!c) {
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
    return mpp ? lengthText(length) : `${length.toLocaleString("en", { maximumFractionDigits: 1 })} px`;
  }
  const [u, v] = [Math.atan2(a[1] - b[1], a[0] - b[0]), Math.atan2(c[1] - b[1], c[0] - b[0])];
  const turn = Math.abs(u - v);
  const degrees = (Math.min(turn, 2 * Math.PI - turn) * 180) / Math.PI;
  return `${degrees.toFixed(1)}°`;
}
