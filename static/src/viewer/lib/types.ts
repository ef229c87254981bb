/** Canvases, ROIs and labels as the API answers them. */

import type { Schemas } from "../../api/schemas";

export type PolygonGeometry = Schemas["PolygonGeometry"];
export type AreaGeometry = PolygonGeometry | Schemas["MultiPolygonGeometry"];
export type LineGeometry = Schemas["LineStringGeometry"];
/** GeoJSON in level-0 pixels, x right, y down. */
export type RoiGeometry = Schemas["Geometry"];
/** Points and lines: they have no area. */
export type MarkGeometry = Exclude<RoiGeometry, AreaGeometry>;
export type Position = Schemas["PointGeometry"]["coordinates"];
export type Properties = Roi["properties"];
export type RoiShape = Roi["shape"];

export type CanvasData = Schemas["Canvas"];
export type CanvasVideo = Schemas["CanvasVideo"];
export type DisplayRange = Schemas["DisplayRange"];
export type Level = Schemas["Level"];

export type FrameRef = Schemas["FrameOut"];
export type KeyFrame = Schemas["KeyFrame"];
export type Roi = Schemas["Roi"];
export type RoiRevision = Schemas["RoiRevision"];
export type Label = Schemas["Label"];
