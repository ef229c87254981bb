/** Outlines that the tool for fixed sizes places at a point, by the chosen kind. */

import { extentFromBounds, geometryFromL0 } from "../../map/pixel_plane";
import type { CanvasData, Position, PolygonGeometry, RoiGeometry } from "../../lib/types";
import LineString from "ol/geom/LineString";
import { centreOf } from "../shapes/outlines";
import type { Bounds } from "../shapes/outlines";
import {
  CIRCLE_MM2, SQUARE_MM2, centreWithin, circleAt, gridCentres, gridShape, isInside, nearestCentres, newGridId, sideUmOf, sizeOf, squareAt,
} from "../shapes/fixed_size";
import type { FixedSize, Scale } from "../shapes/fixed_size";
import { LEAST_TISSUE } from "./tissue_map";
import type { FixedSizeChoice } from "./fixed_size_choice";

export interface PlannedRegion {
  geometry: PolygonGeometry;
  size: FixedSize;
}

export interface PlannerContext {
  canvas: Pick<CanvasData, "width" | "height">;
  scale: Scale;
  /** The selected area that fields have to be inside of; null if none is selected. */
  region: () => RoiGeometry | null;
  /** Share of tissue within bounds; null while it is unknown. */
  tissueShare: (bounds: Bounds) => number | null;
}

export class FixedSizePlanner {
  onChange: () => void = () => undefined;

  constructor(
    private chosen: FixedSizeChoice,
    private readonly context: PlannerContext,
  ) {}

  get choice(): FixedSizeChoice {
    return this.chosen;
  }

  set choice(choice: FixedSizeChoice) {
    this.chosen = choice;
    this.onChange();
  }

  /** Number of regions requested. */
  get count(): number {
    return this.chosen.kind === "grid" ? this.chosen.count : 1;
  }

  /** Regions placed at a point: fewer than the count where there is no room for them. */
  plan(at: Position): PlannedRegion[] {
    if (this.chosen.kind === "grid") return this.fields(at);
    const [kind, areaMm2, shapeAt] = this.chosen.kind === "circle" ? (["circle", CIRCLE_MM2, circleAt] as const) : (["square", SQUARE_MM2, squareAt] as const);
    const centre = centreWithin(at, sizeOf(shapeAt(at, areaMm2, this.context.scale)), this.imageSize);
    return centre ? [{ geometry: shapeAt(centre, areaMm2, this.context.scale), size: { kind, areaMm2, field: null, grid: "" } }] : [];
  }

  /** The reason why fewer regions were placed than requested; empty if all were. */
  shortfallText(placed: number): string {
    if (placed === this.count) return "";
    const { insideRegion, onTissue, kind } = this.chosen;
    if (kind !== "grid") return `The image is smaller than a ${kind} of this size, so nothing was placed.`;
    const where = [insideRegion && this.context.region() ? " inside the selected region" : "", onTissue ? " on tissue" : ""].join("");
    return placed ? `Only ${placed} of ${this.count} fields have room${where || " in the image"}.` : `No field has room${where || " in the image"}, so nothing was placed.`;
  }

  private get imageSize(): [number, number] {
    return [this.context.canvas.width, this.context.canvas.height];
  }

  private fields(at: Position): PlannedRegion[] {
    const { areaMm2, insideRegion, onTissue } = this.chosen;
    const { scale } = this.context;
    const region = insideRegion ? this.context.region() : null;
    const centres = region || onTissue ? this.acceptedCentres(at, this.acceptance(region)) : this.block(at);
    const grid = newGridId();
    return centres.map((centre, index) => ({
      geometry: squareAt(centre, areaMm2, scale),
      size: { kind: "field", areaMm2, field: [index + 1, centres.length], grid },
    }));
  }

  /** Columns and rows where all of them are accepted, else those nearest to the point. */
  private acceptedCentres(at: Position, isAccepted: (centre: Position) => boolean): Position[] {
    const block = this.block(at);
    const isWhole = block.length === this.chosen.count && block.every(isAccepted);
    return isWhole ? block : nearestCentres(at, this.chosen, this.context.scale, isAccepted);
  }

  /** Columns and rows around the point, moved into the image; fields that are outside all the same are left out. */
  private block(at: Position): Position[] {
    const [columns, rows] = gridShape(this.chosen.count);
    const { scale } = this.context;
    const side = sideUmOf(this.chosen.areaMm2);
    const [width, height] = [columns, rows].map((number, axis) => (number * (side + this.chosen.spacingUm) - this.chosen.spacingUm) / scale[axis as 0 | 1]);
    const centre = centreWithin(at, [width ?? 0, height ?? 0], this.imageSize) ?? at;
    return gridCentres(centre, this.chosen, scale).filter((fieldCentre) => isInside(this.boundsAt(fieldCentre), this.imageSize));
  }

  private boundsAt([x, y]: Position): Bounds {
    const half = sideUmOf(this.chosen.areaMm2) / 2;
    const [dx, dy] = this.context.scale.map((mpp) => half / mpp) as Position;
    return [x - dx, y - dy, x + dx, y + dy];
  }

  private acceptance(region: RoiGeometry | null): (centre: Position) => boolean {
    const isCovered = region ? coverage(region) : () => true;
    return (centre) => {
      const bounds = this.boundsAt(centre);
      if (!isInside(bounds, this.imageSize) || !isCovered(bounds)) return false;
      return !this.chosen.onTissue || (this.context.tissueShare(bounds) ?? 1) >= LEAST_TISSUE;
    };
  }
}

/** Whether bounds are inside of an area: their centre is, and no edge of the area crosses them. */
export function coverage(region: RoiGeometry): (bounds: Bounds) => boolean {
  const area = geometryFromL0(region);
  const polygons = area.getType() === "MultiPolygon" ? (area.getCoordinates() as number[][][][]) : [area.getCoordinates() as number[][][]];
  const edges = polygons.flat().map((ring) => new LineString(ring));
  return (bounds) => {
    const extent = extentFromBounds(bounds);
    const [x, y] = centreOf(bounds);
    return area.intersectsCoordinate([x, -y]) && !edges.some((edge) => edge.intersectsExtent(extent));
  };
}
