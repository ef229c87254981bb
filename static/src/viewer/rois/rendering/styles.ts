/** Styles of ROIs, cached by colour and mode: thousands of ROIs share a few. */

import { asArray } from "ol/color";
import LineString from "ol/geom/LineString";
import MultiLineString from "ol/geom/MultiLineString";
import MultiPoint from "ol/geom/MultiPoint";
import MultiPolygon from "ol/geom/MultiPolygon";
import Point from "ol/geom/Point";
import Polygon from "ol/geom/Polygon";
import CircleStyle from "ol/style/Circle";
import Fill from "ol/style/Fill";
import Stroke from "ol/style/Stroke";
import Style from "ol/style/Style";
import Text from "ol/style/Text";
import type { FeatureLike } from "ol/Feature";

/** A light edge under what is being drawn. */
const HALO = "rgba(255, 255, 255, 0.9)";
/** Under what is selected, as in QuPath; with a dark edge it is visible on white glass. */
const SELECTION_EDGE = "#ffd21f";
const DARK_EDGE = "rgba(10, 16, 20, 0.7)";
/** Enough to tell a filled ROI from an outline; the tissue stays legible. */
const FILL_ALPHA = 0.22;
const NAME_FONT = '600 13px "IBM Plex Sans Variable", system-ui, sans-serif';

const outlines = new Map<string, Style[]>();
const names = new Map<string, Style>();

function withAlpha(color: string, alpha: number): number[] {
  const [red = 0, green = 0, blue = 0] = asArray(color);
  return [red, green, blue, alpha];
}

/**
 * A light edge within a dark one under the outline: a colour is visible on white glass, on dark tissue, and
 * on tissue of that very colour.
 */
const CASING = [
  new Style({ stroke: new Stroke({ color: "rgba(10, 16, 20, 0.55)", width: 6 }), zIndex: 0 }),
  new Style({ stroke: new Stroke({ color: "rgba(255, 255, 255, 0.92)", width: 4.5 }), zIndex: 1 }),
];
/** First z-index above the casing. Lines of one colour share a z-index, so that they are stroked together. */
const FIRST_COLOR_Z = 2;
const colors: string[] = [];

function zIndexOf(color: string): number {
  const at = colors.indexOf(color);
  return FIRST_COLOR_Z + (at < 0 ? colors.push(color) - 1 : at);
}

export interface OutlineLook {
  filled: boolean;
  cased: boolean;
}

export function outlineStyles(color: string, { filled, cased }: OutlineLook): Style[] {
  const key = `${color}|${filled}|${cased}`;
  let styles = outlines.get(key);
  if (!styles) {
    const fill = filled ? { fill: new Fill({ color: withAlpha(color, FILL_ALPHA) }) } : {};
    const outline = new Style({ stroke: new Stroke({ color, width: 2.5 }), ...fill, zIndex: zIndexOf(color) });
    styles = cased ? [...CASING, outline] : [outline];
    outlines.set(key, styles);
  }
  return styles;
}

const dots = new Map<string, Style>();

/** Style of outlines too small to draw: a dot at the centre. */
export function dotStyle(color: string): Style {
  let style = dots.get(color);
  if (!style) {
    style = new Style({
      geometry: (feature) => {
        const [left = 0, low = 0, right = 0, high = 0] = feature.getGeometry()?.getExtent() ?? [];
        return new Point([(left + right) / 2, (low + high) / 2]);
      },
      image: new CircleStyle({ radius: 2, fill: new Fill({ color }), declutterMode: "none" }),
      zIndex: zIndexOf(color),
    });
    dots.set(color, style);
  }
  return style;
}

/** Points are equally large at every zoom. */
const POINT_RADIUS = 5;
const points = new Map<string, Style[]>();

export function pointStyles(color: string): Style[] {
  let styles = points.get(color);
  if (!styles) {
    const dot = (radius: number, fill: string): CircleStyle => new CircleStyle({ radius, fill: new Fill({ color: fill }), declutterMode: "none" });
    styles = [
      new Style({ image: dot(POINT_RADIUS + 2.5, "rgba(10, 16, 20, 0.55)"), zIndex: 0 }),
      new Style({ image: dot(POINT_RADIUS + 1.5, "rgba(255, 255, 255, 0.92)"), zIndex: 1 }),
      new Style({ image: dot(POINT_RADIUS, color), zIndex: zIndexOf(color) }),
    ];
    points.set(color, styles);
  }
  return styles;
}

/** A yellow ring around each, as a line has when it is selected. */
export function selectedPointStyles(color: string): Style[] {
  const ring = (radius: number, line: string, width: number): Style =>
    new Style({ image: new CircleStyle({ radius, stroke: new Stroke({ color: line, width }), declutterMode: "none" }), zIndex: 1000 });
  return [ring(POINT_RADIUS + 5, DARK_EDGE, 5), ring(POINT_RADIUS + 5, SELECTION_EDGE, 3), ...pointStyles(color)];
}

function verticesOf(feature: FeatureLike): MultiPoint | undefined {
  const geometry = feature.getGeometry();
  if (geometry instanceof Polygon) return new MultiPoint(geometry.getCoordinates().flat());
  if (geometry instanceof MultiPolygon) return new MultiPoint(geometry.getCoordinates().flat(2));
  if (geometry instanceof LineString) return new MultiPoint(geometry.getCoordinates());
  if (geometry instanceof MultiLineString) return new MultiPoint(geometry.getCoordinates().flat());
  return undefined;
}

export interface SelectedLook {
  editable: boolean;
  /** Whether regions are filled; off by default, because a tint changes the colours of the tissue. */
  filled: boolean;
}

/** Largest number of handles: more would cover the outline. */
const VERTICES_SHOWN_UP_TO = 400;

/** A yellow edge, a thick line, and a handle on each vertex unless there are too many. */
export function selectedStyles(feature: FeatureLike, color: string, adjustments: SelectedLook): Style[] {
  const styles = [
    new Style({ stroke: new Stroke({ color: DARK_EDGE, width: 9 }), zIndex: 999 }),
    new Style({ stroke: new Stroke({ color: SELECTION_EDGE, width: 7 }), zIndex: 1000 }),
    new Style({
      stroke: new Stroke({ color, width: 3 }),
      ...(adjustments.filled ? { fill: new Fill({ color: withAlpha(color, FILL_ALPHA) }) } : {}),
      zIndex: 1001,
    }),
  ];
  const vertices = adjustments.editable ? verticesOf(feature) : undefined;
  if (vertices && vertices.getCoordinates().length <= VERTICES_SHOWN_UP_TO) {
    const image = new CircleStyle({
      radius: 4.5,
      declutterMode: "none", // a name may lie over a handle, never hide it
      fill: new Fill({ color: "#fff" }),
      stroke: new Stroke({ color, width: 2 }),
    });
    styles.push(new Style({ geometry: vertices, image, zIndex: 1002 }));
  }
  return styles;
}

export function nameStyle(text: string): Style {
  let style = names.get(text);
  if (!style) {
    style = new Style({
      text: new Text({
        text,
        font: NAME_FONT,
        overflow: true,
        fill: new Fill({ color: "#10151c" }),
        stroke: new Stroke({ color: HALO, width: 4 }),
      }),
      zIndex: 1010,
    });
    names.set(text, style);
  }
  return style;
}

export function sketchStyle(color: string): Style[] {
  return [
    new Style({ stroke: new Stroke({ color: HALO, width: 5 }) }),
    new Style({
      stroke: new Stroke({ color, width: 2.5 }),
      fill: new Fill({ color: withAlpha(color, FILL_ALPHA) }),
      image: new CircleStyle({
        radius: 5,
        fill: new Fill({ color }),
        stroke: new Stroke({ color: "#fff", width: 2 }),
      }),
    }),
  ];
}
