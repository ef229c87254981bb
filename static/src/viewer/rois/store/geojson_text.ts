/** ROIs as text that other canvases, and QuPath, can read: GeoJSON in level-0 pixels. */

import { isArea, mapVertices, shapeOf, verticesOf } from "../shapes/outlines";
import { polygonsOf } from "../shapes/areas";
import type { RoiFields } from "./api";
import type { Labels } from "./labels";
import type { RoiState } from "./roi_state";
import type { CanvasData, Properties, RoiGeometry, RoiShape } from "../../lib/types";

type Scale = [number, number] | null;
export type OutlineFields = Pick<RoiFields, "geometry" | "shape" | "label" | "name" | "description" | "properties">;

export interface CopiedRois {
  rois: OutlineFields[];
  /** The canvas they were copied from; null if another program wrote the text. */
  from: string | null;
}

/** Member that names the source of a copy. */
const SOURCE = "tessera";

/** Key frames as text, as the server writes them: QuPath keeps it. */
const TRACK = "tessera.track";
/** QuPath's metadata key of the description. */
const DESCRIPTION = "ANNOTATION_DESCRIPTION";
const TESSERA_PREFIX = "tessera.";

const scaleOf = ({ mpp_x, mpp_y }: CanvasData): Scale => (mpp_x && mpp_y ? [mpp_x, mpp_y] : null);

export function featureCollectionOf(states: RoiState[], canvas: CanvasData, labels: Labels): object {
  const features = states.map((state) => ({
    type: "Feature",
    id: state.id,
    geometry: { ...geometryOf(state), ...planeOf(state) },
    properties: {
      objectType: "annotation",
      ...(state.name ? { name: state.name } : {}),
      ...classOf(state.label, labels),
      ...(state.locked ? { isLocked: true } : {}),
      ...metadataOf(state),
    },
  }));
  return { type: "FeatureCollection", features, [SOURCE]: { canvas: canvas.id, mpp: scaleOf(canvas) } };
}

/** Metadata of an annotation as in QuPath. */
function metadataOf({ track, description, properties }: RoiState): object {
  const metadata: Record<string, string> = { ...properties };
  if (track.length) metadata[TRACK] = JSON.stringify(track);
  if (description) metadata[DESCRIPTION] = description;
  return Object.keys(metadata).length ? { metadata } : {};
}

/** Geometry on the ROI's own frame. */
function geometryOf(state: RoiState): object {
  const { geometry, shape } = state.currentFields();
  return { ...geometry, ...(shape === "ellipse" ? { isEllipse: true } : {}) };
}

const planeOf = ({ frame }: RoiState): object => (frame?.index ? { plane: { c: -1, z: 0, t: frame.index } } : {});

function classOf(id: string | null, labels: Labels): object {
  const label = labels.get(id);
  if (!label) return {};
  const color = [1, 3, 5].map((at) => parseInt(label.color.slice(at, at + 2), 16));
  return { classification: { name: label.name, color } };
}

/** ROIs of a copied text, scaled to this canvas if both pixel sizes are known; null if it is no GeoJSON. */
export function parseCopiedRois(text: string, canvas: CanvasData, labels: Labels): CopiedRois | null {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(document)) return null;
  const features = document.type === "Feature" ? [document] : document.features;
  if (!Array.isArray(features)) return null;
  const source = isObject(document[SOURCE]) ? document[SOURCE] : {};
  const [sx, sy] = factors(source.mpp, scaleOf(canvas));
  const rois = features
    .map((feature: unknown) => readFeature(feature, labels))
    .filter((one) => one !== null)
    .map((one) => ({ ...one, geometry: mapVertices(one.geometry, ([x, y]) => [x * sx, y * sy]) }));
  return rois.length ? { rois, from: typeof source.canvas === "string" ? source.canvas : null } : null;
}

function factors(from: unknown, to: Scale): [number, number] {
  if (!to || !Array.isArray(from) || !from.every((one) => typeof one === "number" && one > 0)) return [1, 1];
  const [x, y] = from as [number, number];
  return [x / to[0], y / to[1]];
}

function readFeature(feature: unknown, labels: Labels): OutlineFields | null {
  if (!isObject(feature) || !isObject(feature.geometry)) return null;
  const { geometry } = feature;
  const properties = isObject(feature.properties) ? feature.properties : {};
  const read = { type: geometry.type, coordinates: geometry.coordinates } as RoiGeometry;
  if (!isOutline(read)) return null;
  return {
    geometry: read,
    shape: geometry.isEllipse === true && isArea(read) ? "ellipse" : shapeOf(read),
    label: labelNamed(properties.classification, labels),
    name: typeof properties.name === "string" ? properties.name.slice(0, 120) : "",
    ...textsOf(properties.metadata),
  };
}

function textsOf(metadata: unknown): { description: string; properties: Properties } {
  const texts = Object.entries(isObject(metadata) ? metadata : {}).filter((one): one is [string, string] => typeof one[1] === "string");
  const description = texts.find(([key]) => key === DESCRIPTION)?.[1] ?? "";
  return { description, properties: Object.fromEntries(texts.filter(([key]) => key !== DESCRIPTION && !key.startsWith(TESSERA_PREFIX))) };
}

const TYPES = ["Polygon", "MultiPolygon", "Point", "MultiPoint", "LineString", "MultiLineString"];
/** Vertices that each kind has at least; a ring repeats its first. */
const MIN_VERTICES: Record<RoiShape, number> = { polygon: 4, ellipse: 4, line: 2, point: 1 };

function isOutline(geometry: RoiGeometry): boolean {
  if (!TYPES.includes(geometry.type) || !Array.isArray(geometry.coordinates)) return false;
  try {
    const points: unknown[] = isArea(geometry) ? polygonsOf(geometry).flat(2) : verticesOf(geometry);
    const isPoint = (point: unknown): boolean =>
      Array.isArray(point) && point.length >= 2 && point.every((value) => Number.isFinite(value));
    return Array.isArray(points) && points.length >= MIN_VERTICES[shapeOf(geometry)] && points.every(isPoint);
  } catch {
    return false;
  }
}

function labelNamed(classification: unknown, labels: Labels): string | null {
  const name = isObject(classification) ? classification.name : classification;
  if (typeof name !== "string") return null;
  return labels.all.find((label) => label.name.toLowerCase() === name.toLowerCase())?.id ?? null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
