/** What is done to all selected ROIs at once: one step of the history, one request. */

import { areaPx, intersect, polygonsOf, simplified, split, subtract, unite, withoutHoles } from "../shapes/areas";
import type { RoiFields, RoiPatch } from "../saved/api";
import { unborn } from "../saved/edits";
import type { Change, RoiEdits } from "../saved/edits";
import type { Labels } from "../saved/labels";
import type { RoiLayer } from "../shown/layer";
import { boundsOf, centreOf, isArea, moved, turned } from "../shapes/outlines";
import type { RoiState } from "../saved/state";
import type { FrameRef, Position, RoiGeometry } from "../../lib/types";

/** A copy lies this much beside its original, in screen pixels. */
const BESIDE_SCREEN_PX = 16;

export type Combination = "unite" | "subtract" | "intersect";

export interface CommandContext {
  frame: () => FrameRef | null;
  /** Level-0 pixels per screen pixel. */
  resolution: () => number;
  /** Not all ROIs of the canvas are on the page. */
  isWindowed: () => boolean;
  tell: (text: string) => void;
}

export class RoiCommands {
  constructor(
    private readonly layer: RoiLayer,
    private readonly edits: RoiEdits,
    private readonly labels: Labels,
    private readonly context: CommandContext,
  ) {}

  selectAll(): void {
    const shown = this.layer.shown();
    this.layer.choose(shown.map((state) => state.id));
    const rest = this.context.isWindowed() ? " Only the largest in view: there are too many to show at once." : "";
    this.context.tell(shown.length ? `${counted(shown)} selected.${rest}` : "There is no ROI to select.");
  }

  /** All on the map with the label of one that is selected. */
  selectLike(): void {
    const labels = new Set(this.layer.selection.map((state) => state.label));
    const alike = this.layer.shown().filter((state) => labels.has(state.label));
    this.layer.choose(alike.map((state) => state.id));
    this.context.tell(`${counted(alike)} selected.`);
  }

  remove(): number {
    const free = this.free();
    if (!this.change("Delete", free, () => ({ deleted: true }))) return 0;
    return free.length;
  }

  relabel(label: string | null): void {
    const other = this.free().filter((state) => state.label !== label);
    if (this.change("Set label", other, () => ({ patch: { label } }))) {
      this.context.tell(`${counted(other)}: ${this.labels.nameOf(label)}.`);
    }
  }

  /** Locks them, or unlocks them where all are locked. */
  toggleLock(): void {
    const states = this.layer.selection;
    const locked = !states.every((state) => state.locked);
    const other = states.filter((state) => state.locked !== locked);
    if (!this.change(locked ? "Lock" : "Unlock", other, () => ({ patch: { locked } }))) return;
    this.context.tell(`${counted(other)} ${locked ? "locked: no change until unlocked." : "unlocked."}`);
  }

  duplicate(): void {
    const shift = BESIDE_SCREEN_PX * this.context.resolution();
    const copies = this.layer.selection.map((state) => ({
      wanted: {
        ...state.wanted(),
        ...{ locked: false, track: [], shape: state.shape, geometry: moved(state.geometry, [shift, shift]) },
      },
      frame: state.keyedAt ?? state.frame,
    }));
    this.create("Duplicate", copies);
  }

  paste(rois: (RoiPatch & { geometry: RoiGeometry })[]): void {
    this.create("Paste", rois.map((wanted) => ({ wanted, frame: this.context.frame() })));
  }

  /** By level-0 pixels; a drag says that it moved something, as it may have been meant for the image. */
  move(by: Position, isDrag = false): void {
    const free = this.free();
    const place = (state: RoiState): RoiPatch => ({ geometry: moved(state.geometry, by), shape: state.shape });
    const isMoved = this.change("Move", free, (state) => ({ patch: place(state) }));
    if (isMoved && isDrag) this.context.tell(`${counted(free)} moved. Ctrl+Z undoes it, Space and drag moves the image.`);
  }

  /** Around the middle of all of them; an ellipse stays one only by right angles. */
  rotate(degrees: number): void {
    const free = this.free();
    const centre = centreOf(boundsOf(free.map((state) => state.geometry)));
    const isRight = degrees % 90 === 0;
    this.change("Rotate", free, (state) => ({
      patch: {
        geometry: turned(state.geometry, centre, (degrees * Math.PI) / 180),
        shape: isRight || state.shape !== "ellipse" ? state.shape : "polygon",
      },
    }));
  }

  /** Of the first one selected with the others: united they become one, otherwise the others stay. */
  combine(how: Combination): void {
    const [first, ...others] = this.layer.selection.filter(({ geometry }) => isArea(geometry));
    if (!first || !others.length) return this.context.tell("Select two or more areas: Shift and click.");
    const result = combined(how, first.geometry, others.map((state) => state.geometry));
    if (!result) return this.context.tell("Nothing would be left of the first one, so nothing was changed.");
    const changes: Change[] = [{ state: first, patch: { geometry: result } }];
    if (how === "unite") changes.push(...others.map((state) => ({ state, deleted: true })));
    if (!this.edits.together(NAMES[how], changes)) return;
    this.layer.select(first.id);
    this.context.tell(`${NAMES[how]}: ${first.name || this.labels.nameOf(first.label)} and ${others.length} more.`);
  }

  /** Cuts every selected one that the line crosses; the largest piece stays what it was. */
  split(line: Position[]): void {
    const changes: Change[] = [];
    for (const state of this.free()) {
      const [largest, ...pieces] = split(state.geometry, line) ?? [];
      if (!largest) continue;
      changes.push({ state, patch: { geometry: largest } });
      for (const geometry of pieces) {
        changes.push({ state: unborn({ ...state.wanted(), shape: "polygon", geometry }, state.frame), deleted: false });
      }
    }
    if (!changes.length) return this.context.tell("The line cuts no selected ROI.");
    if (!this.edits.together("Split", changes)) return;
    this.layer.choose(changes.map(({ state }) => state.id));
    this.context.tell(`Split into ${changes.length}.`);
  }

  fillHoles(): void {
    const holed = this.free().filter((state) => polygonsOf(state.geometry).some((rings) => rings.length > 1));
    if (!this.change("Fill holes", holed, (state) => ({ patch: { geometry: withoutHoles(state.geometry) } }))) {
      this.context.tell("There are no holes to fill.");
    }
  }

  simplify(tolerancePx: number): void {
    const areas = this.free().filter(({ geometry }) => isArea(geometry));
    this.change("Simplify", areas, (state) => ({ patch: { geometry: simplified(state.geometry, tolerancePx) } }));
  }

  /** Those selected that may be changed; says how many are locked. */
  free(): RoiState[] {
    const states = this.layer.selection;
    const free = states.filter((state) => !state.locked);
    if (free.length < states.length) {
      const locked = states.length - free.length;
      this.context.tell(locked === 1 ? "The locked ROI stays as it is." : `${locked} locked ROIs stay as they are.`);
    }
    return free;
  }

  private change(label: string, states: RoiState[], to: (state: RoiState) => Omit<Change, "state">): boolean {
    return states.length > 0 && this.edits.together(label, states.map((state) => ({ state, ...to(state) })));
  }

  private create(label: string, made: { wanted: RoiPatch & { geometry: RoiGeometry }; frame: FrameRef | null }[]): void {
    const states = made.map(({ wanted, frame }) => unborn(wanted, frame));
    if (!this.change(label, states, () => ({ deleted: false }))) return;
    this.layer.choose(states.map((state) => state.id));
  }
}

const NAMES: Record<Combination, string> = { unite: "Unite", subtract: "Subtract", intersect: "Intersect" };

function combined(how: Combination, first: RoiGeometry, others: RoiGeometry[]): RoiGeometry | null {
  if (how === "unite") return unite([first, ...others]);
  return how === "subtract" ? subtract(first, others) : intersect(first, others);
}

const counted = (states: RoiState[]): string => (states.length === 1 ? "1 ROI" : `${states.length} ROIs`);

/** What the panel says of several ROIs: how many, and their area together. */
export function areaOfAll(states: Pick<RoiFields, "geometry">[]): number {
  return states.flatMap((state) => polygonsOf(state.geometry)).reduce((sum, rings) => sum + areaPx(rings), 0);
}
