/** Changes of ROIs: each is saved automatically and can be undone. */

import type { History } from "../../lib/history";
import { randomUuid } from "../../lib/uuid";
import { Edits } from "../../lib/saving/edits";
import type { AppliedChange } from "../../lib/saving/saved_store";
import type { FrameRef, Roi, RoiGeometry, RoiShape } from "../../lib/types";
import type { RoiFields, RoiPatch } from "./api";
import { FIXED_SIZE_KEY, isCongruent, ordinaryProperties } from "../shapes/fixed_size";
import { shapeOf } from "../shapes/outlines";
import { withKeyFrame } from "../shapes/track";
import { ROI_MERGE } from "./merge";
import { RoiState, versionOf, withShape } from "./roi_state";
import type { Version } from "./roi_state";
import type { RoiStore } from "./roi_store";

export interface Outline {
  geometry: RoiGeometry;
  shape?: RoiShape;
}

/** Change of one ROI among several; a new ROI starts as `deleted`. */
export interface Change {
  state: RoiState;
  patch?: RoiPatch;
  deleted?: boolean;
}

/** Turn an outline changed on another frame into a key frame. */
function onFrame(state: RoiState, { geometry, shape, ...patch }: RoiPatch): RoiPatch {
  const frame = state.keyFrameAt;
  if (geometry && patch.track) return { ...patch, geometry, ...(shape ? { shape } : {}) };
  if (!geometry) return { ...patch, ...(shape ? { shape } : {}) };
  const outline = { geometry, shape: shape ?? shapeOf(geometry) };
  return frame ? { ...patch, track: withKeyFrame(state.trackedOutline, frame, outline) } : { ...patch, ...outline };
}

/** A region whose outline becomes another one loses its fixed size; moved or turned it keeps it. */
function withSize(state: RoiState, patch: RoiPatch): RoiPatch {
  if (!patch.geometry || patch.properties || !(FIXED_SIZE_KEY in state.properties)) return patch;
  return isCongruent(state.geometry, patch.geometry) ? patch : { ...patch, properties: ordinaryProperties(state.properties) };
}

/** An ROI that does not exist yet, for a change that creates it. */
export function newRoiState(fields: RoiPatch & { geometry: RoiGeometry }, frame: FrameRef | null): RoiState {
  const state = new RoiState(randomUuid(), frame, fields);
  state.deleted = true;
  return state;
}

export class RoiEdits extends Edits<RoiFields, Roi, RoiState> {
  constructor(
    private readonly rois: RoiStore,
    history: History,
  ) {
    super(rois, history, { noun: "region", merge: ROI_MERGE, versionOf });
  }

  /** Show why a change was not made. */
  onRefused: (reason: string) => void = () => undefined;

  create(outline: Outline, label: string | null, frame: FrameRef | null): RoiState {
    const state = new RoiState(randomUuid(), frame, { ...outline, label });
    this.addNew(state, "Draw region");
    return state;
  }

  override change(state: RoiState, patch: RoiPatch, label: string): void {
    if (patch.locked === undefined && this.isLocked([state])) return;
    super.change(state, onFrame(state, withSize(state, withShape(patch))), label);
  }

  /** Apply a step of a history recorded elsewhere, without recording it again. */
  replay(state: RoiState, patch: RoiPatch): void {
    if (!this.isLocked([state])) this.apply(state, patch);
  }

  override remove(state: RoiState): void {
    if (!this.isLocked([state])) super.remove(state);
  }

  /** Change many ROIs in one step of the history and one request; false if one is locked. */
  changeMany(label: string, changes: Change[]): boolean {
    if (this.isLocked(changes.filter(({ patch }) => patch?.locked === undefined).map(({ state }) => state))) return false;
    const steps = changes.map(({ state, patch, deleted }) =>
      this.stepOf(state, { ...onFrame(state, withSize(state, withShape(patch ?? {}))), ...(deleted === undefined ? {} : { deleted }) }),
    );
    this.publishAll(steps.map(({ state, after }) => this.set(state, after)));
    const go = (isUndo: boolean) => () => this.publishAll(steps.flatMap((step) => this.applyStep(step, isUndo) ?? []));
    this.history.record({ label, undo: go(true), redo: go(false) });
    return true;
  }

  private publishAll(done: AppliedChange<RoiState>[]): void {
    this.store.emitChanges(done);
    this.store.sync.scheduleBatch(done.map(({ state }) => state));
  }

  private isLocked(states: RoiState[]): boolean {
    const locked = states.filter((state) => state.locked && !state.deleted).length;
    if (locked) this.onRefused(locked === 1 ? "The region is locked." : `${locked} of the regions are locked.`);
    return locked > 0;
  }

  protected override set(state: RoiState, to: Partial<Version>): AppliedChange<RoiState> {
    const change = super.set(state, to);
    if (change.wasDeleted !== state.deleted) this.rois.adjustCount(state.deleted ? -1 : 1);
    return change;
  }
}
