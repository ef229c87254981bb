/** Commands on all selected ROIs: one undo step, one request. */

import { areaPx, intersect, polygonsOf, simplified, split, subtract, unite, withoutHoles } from "../shapes/areas";
import type { RoiFields, RoiPatch } from "../store/api";
import { newRoiState } from "../store/edits";
import type { Change, RoiEdits } from "../store/edits";
import type { Labels } from "../store/labels";
import type { RoiLayer } from "../rendering/roi_layer";
import { newGridId, ordinaryProperties, withNewGrids } from "../shapes/fixed_size";
import { boundsOf, centreOf, isArea, translated, rotated } from "../shapes/outlines";
import type { RoiState } from "../store/roi_state";
import type { FrameRef, Position, RoiGeometry } from "../../lib/types";

/** Offset of a duplicate from its original. */
const DUPLICATE_OFFSET_SCREEN_PX = 16;

export type Combination = "unite" | "subtract" | "intersect";

export interface CommandContext {
  frame: () => FrameRef | null;
  /** Level-0 pixels per screen pixel. */
  resolution: () => number;
  /** Whether only some ROIs of the canvas are loaded. */
  isWindowed: () => boolean;
  showNotice: (text: string) => void;
  hideNotice: (text: string) => void;
}

export class RoiCommands {
  constructor(
    private readonly layer: RoiLayer,
    private readonly edits: RoiEdits,
    private readonly labels: Labels,
    private readonly context: CommandContext,
  ) {}

  selectAll(): void {
    const shown = this.layer.visibleRois();
    this.layer.selectMany(shown.map((state) => state.id));
    const rest = this.context.isWindowed() ? " Only those shown: there are too many to select all." : "";
    this.showSelected(shown.length ? `${regionCountText(shown)} selected.${rest}` : "There is no region to select.");
  }

  /** Select all loaded ROIs with the label of a selected one. */
  selectSameLabel(): void {
    const labels = new Set(this.layer.selection.map((state) => state.label));
    const alike = this.layer.visibleRois().filter((state) => labels.has(state.label));
    this.layer.selectMany(alike.map((state) => state.id));
    this.showSelected(`${regionCountText(alike)} selected.`);
  }

  /** Show a message until the selection changes. */
  private showSelected(text: string): void {
    this.context.showNotice(text);
    const stop = this.layer.on("selection", () => {
      stop();
      this.context.hideNotice(text);
    });
  }

  remove(): number {
    const unlocked = this.unlocked();
    if (!this.change("Delete", unlocked, () => ({ deleted: true }))) return 0;
    return unlocked.length;
  }

  relabel(label: string | null): void {
    const other = this.unlocked().filter((state) => state.label !== label);
    if (this.change("Set label", other, () => ({ patch: { label } }))) {
      this.context.showNotice(`${regionCountText(other)}: ${this.labels.nameOf(label)}.`);
    }
  }

  /** Lock the selected ROIs, or unlock them if all are locked. */
  toggleLock(): void {
    const states = this.layer.selection;
    const locked = !states.every((state) => state.locked);
    const other = states.filter((state) => state.locked !== locked);
    if (!this.change(locked ? "Lock" : "Unlock", other, () => ({ patch: { locked } }))) return;
    this.context.showNotice(`${regionCountText(other)} ${locked ? "locked: no change until unlocked." : "unlocked."}`);
  }

  duplicate(): void {
    const shift = DUPLICATE_OFFSET_SCREEN_PX * this.context.resolution();
    const copies = this.layer.selection.map((state) => ({
      fields: {
        ...state.currentFields(),
        ...{ locked: false, track: [], shape: state.shape, geometry: translated(state.geometry, [shift, shift]) },
      },
      frame: state.keyFrameAt ?? state.frame,
    }));
    this.create("Duplicate", copiesOf(copies));
  }

  paste(rois: (RoiPatch & { geometry: RoiGeometry })[]): void {
    this.create("Paste", copiesOf(rois.map((fields) => ({ fields, frame: this.context.frame() }))));
  }

  /** Move by level-0 pixels; a drag shows a message, as it may have been meant for the image. */
  move(by: Position, isDrag = false): void {
    const unlocked = this.unlocked();
    const place = (state: RoiState): RoiPatch => ({ geometry: translated(state.geometry, by), shape: state.shape });
    const isMoved = this.change("Move", unlocked, (state) => ({ patch: place(state) }));
    if (isMoved && isDrag) this.context.showNotice(`${regionCountText(unlocked)} moved. Ctrl+Z undoes it, Space and drag moves the image.`);
  }

  /** Rotate around the common centre; ellipses stay ellipses only at right angles. */
  rotate(degrees: number): void {
    const unlocked = this.unlocked();
    const centre = centreOf(boundsOf(unlocked.map((state) => state.geometry)));
    const isRight = degrees % 90 === 0;
    this.change("Rotate", unlocked, (state) => ({
      patch: {
        geometry: rotated(state.geometry, centre, (degrees * Math.PI) / 180),
        shape: isRight || state.shape !== "ellipse" ? state.shape : "polygon",
      },
    }));
  }

  /** Combine the first selected ROI with the others; only a union deletes the others. */
  combine(combination: Combination): void {
    const [first, ...others] = this.layer.selection.filter(({ geometry }) => isArea(geometry));
    if (!first || !others.length) return this.context.showNotice("Select two or more areas: Shift and click.");
    const result = combined(combination, first.geometry, others.map((state) => state.geometry));
    if (!result) return this.context.showNotice("Nothing would be left of the first one, so nothing was changed.");
    const changes: Change[] = [{ state: first, patch: { geometry: result } }];
    if (combination === "unite") changes.push(...others.map((state) => ({ state, deleted: true })));
    if (!this.edits.changeMany(NAMES[combination], changes)) return;
    this.layer.select(first.id);
    this.context.showNotice(`${NAMES[combination]}: ${first.name || this.labels.nameOf(first.label)} and ${others.length} more.`);
  }

  /** Cut every selected ROI that the line crosses; its largest piece keeps its identity. */
  split(line: Position[]): void {
    const changes: Change[] = [];
    for (const state of this.unlocked()) {
      const [largest, ...pieces] = split(state.geometry, line) ?? [];
      if (!largest) continue;
      changes.push({ state, patch: { geometry: largest } });
      for (const geometry of pieces) {
        changes.push({ state: newRoiState({ ...state.currentFields(), properties: ordinaryProperties(state.properties), shape: "polygon", geometry }, state.frame), deleted: false });
      }
    }
    if (!changes.length) return this.context.showNotice("The line cuts no selected region.");
    if (!this.edits.changeMany("Split", changes)) return;
    this.layer.selectMany(changes.map(({ state }) => state.id));
    this.context.showNotice(`Split into ${changes.length}.`);
  }

  fillHoles(): void {
    const holed = this.unlocked().filter((state) => polygonsOf(state.geometry).some((rings) => rings.length > 1));
    if (!this.change("Fill holes", holed, (state) => ({ patch: { geometry: withoutHoles(state.geometry) } }))) {
      this.context.showNotice("There are no holes to fill.");
    }
  }

  simplify(tolerancePx: number): void {
    const areas = this.unlocked().filter(({ geometry }) => isArea(geometry));
    this.change("Simplify", areas, (state) => ({ patch: { geometry: simplified(state.geometry, tolerancePx) } }));
  }

  /** Selected ROIs that are not locked; reports how many are. */
  unlocked(): RoiState[] {
    const states = this.layer.selection;
    const unlocked = states.filter((state) => !state.locked);
    if (unlocked.length < states.length) {
      const locked = states.length - unlocked.length;
      this.context.showNotice(locked === 1 ? "The locked region stays as it is." : `${locked} locked regions stay as they are.`);
    }
    return unlocked;
  }

  private change(label: string, states: RoiState[], changeOf: (state: RoiState) => Omit<Change, "state">): boolean {
    return states.length > 0 && this.edits.changeMany(label, states.map((state) => ({ state, ...changeOf(state) })));
  }

  /** Make regions and select them, as one step of the history. */
  create(label: string, made: NewRoi[]): void {
    const states = made.map(({ fields, frame }) => newRoiState(fields, frame));
    if (!this.change(label, states, () => ({ deleted: false }))) return;
    this.layer.selectMany(states.map((state) => state.id));
  }
}

const NAMES: Record<Combination, string> = { unite: "Unite", subtract: "Subtract", intersect: "Intersect" };

function combined(combination: Combination, first: RoiGeometry, others: RoiGeometry[]): RoiGeometry | null {
  if (combination === "unite") return unite([first, ...others]);
  return combination === "subtract" ? subtract(first, others) : intersect(first, others);
}

type NewRoi = { fields: RoiPatch & { geometry: RoiGeometry }; frame: FrameRef | null };

/** Copies of regions; those of fields belong to a grid of their own. */
function copiesOf(made: NewRoi[]): NewRoi[] {
  const renamed = withNewGrids(made.map(({ fields }) => fields), newGridId);
  return made.map((one, index) => ({ ...one, fields: renamed[index] ?? one.fields }));
}

const regionCountText = (states: RoiState[]): string => (states.length === 1 ? "1 region" : `${states.length} regions`);

/** Total area of several ROIs. */
export function areaOfAll(states: Pick<RoiFields, "geometry">[]): number {
  return states.flatMap((state) => polygonsOf(state.geometry)).reduce((sum, rings) => sum + areaPx(rings), 0);
}
