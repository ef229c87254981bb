/** What the user does to ROIs: every change goes through here, is saved by itself and can be undone. */

import type { History } from "../lib/history";
import { randomUuid } from "../lib/uuid";
import type { FrameRef, Roi, RoiGeometry, RoiShape } from "../lib/types";
import type { RoiPatch } from "./api";
import { RoiState, whole } from "./state";
import type { RoiStore } from "./store";

export interface Outline {
  geometry: RoiGeometry;
  shape?: RoiShape;
}

/** What becomes of one of many; one that is new here is `deleted` before. */
export interface Change {
  state: RoiState;
  patch?: RoiPatch;
  deleted?: boolean;
}

type Snapshot = RoiPatch & { deleted: boolean };

const snapshot = (state: RoiState): Snapshot => ({ ...state.wanted(), deleted: state.deleted });

const settled = ({ patch, deleted }: Change): Partial<Snapshot> => ({
  ...whole(patch ?? {}),
  ...(deleted === undefined ? {} : { deleted }),
});

/** An ROI that is not there yet, for a change that makes it. */
export function unborn(wanted: RoiPatch & { geometry: RoiGeometry }, frame: FrameRef | null): RoiState {
  const state = new RoiState(randomUuid(), frame, wanted);
  state.deleted = true;
  return state;
}

export class RoiEdits {
  constructor(
    private readonly store: RoiStore,
    private readonly history: History,
  ) {}

  /** Tells why a change was not made. */
  refused: (reason: string) => void = () => undefined;

  create(outline: Outline, label: string | null, frame: FrameRef | null): RoiState {
    const state = new RoiState(randomUuid(), frame, { ...outline, label });
    this.store.add(state);
    this.store.sync.schedule(state);
    this.history.record({
      label: "Draw ROI",
      undo: () => this.setDeleted(state, true),
      redo: () => this.setDeleted(state, false),
    });
    return state;
  }

  change(state: RoiState, given: RoiPatch, label: string): void {
    if (given.locked === undefined && this.isLocked([state])) return;
    const patch = whole(given);
    const before: RoiPatch = {};
    for (const key of Object.keys(patch)) {
      Object.assign(before, { [key]: state[key as keyof RoiPatch] });
    }
    this.apply(state, patch);
    this.history.record({
      label,
      undo: () => this.apply(state, before),
      redo: () => this.apply(state, patch),
    });
  }

  remove(state: RoiState): void {
    if (this.isLocked([state])) return;
    this.setDeleted(state, true);
    this.history.record({
      label: "Delete ROI",
      undo: () => this.setDeleted(state, false),
      redo: () => this.setDeleted(state, true),
    });
  }

  /** One step of the history and one request, over many ROIs; false where one of them is locked. */
  together(label: string, changes: Change[]): boolean {
    if (this.isLocked(changes.filter(({ patch }) => patch?.locked === undefined).map(({ state }) => state))) return false;
    const before = changes.map(({ state }) => snapshot(state));
    const after = changes.map((change, index) => ({ ...(before[index] as Snapshot), ...settled(change) }));
    const run = (to: Snapshot[]): void => this.applyAll(changes.map(({ state }) => state), to);
    run(after);
    this.history.record({ label, undo: () => run(before), redo: () => run(after) });
    return true;
  }

  private isLocked(states: RoiState[]): boolean {
    const locked = states.filter((state) => state.locked && !state.deleted).length;
    if (locked) this.refused(locked === 1 ? "The ROI is locked." : `${locked} of the ROIs are locked.`);
    return locked > 0;
  }

  private applyAll(states: RoiState[], to: Snapshot[]): void {
    const changed = states.map((state, index) => {
      const { deleted, ...patch } = to[index] as Snapshot;
      this.store.reattach(state);
      const wasDeleted = state.deleted;
      state.deleted = deleted;
      if (!deleted) state.want(patch);
      if (wasDeleted !== deleted) this.store.total += deleted ? -1 : 1;
      return { state, wasDeleted };
    });
    this.store.announceAll(changed);
    this.store.sync.together(states);
  }

  /** The user keeps their own version: send it on top of the other. */
  keepMine(state: RoiState, theirs: Roi): void {
    state.server = theirs;
    state.problem = null;
    this.store.sync.schedule(state, 0);
  }

  /** The user takes the other version; undo brings their own back. */
  takeTheirs(state: RoiState, theirs: Roi): void {
    const mine = state.wanted();
    const wasDeleted = state.deleted;
    state.takeServer(theirs);
    this.store.announce(state, wasDeleted);
    this.store.sync.schedule(state, 0);
    const { geometry, shape, label, name, locked } = theirs;
    this.history.record({
      label: "Take the other version",
      undo: () => (wasDeleted ? this.setDeleted(state, true) : this.apply(state, mine)),
      redo: () => {
        this.setDeleted(state, theirs.deleted_at !== null);
        this.apply(state, { geometry, shape, label, name, locked });
      },
    });
  }

  private apply(state: RoiState, patch: RoiPatch): void {
    this.store.reattach(state);
    const wasDeleted = state.deleted;
    state.deleted = false;
    state.want(patch);
    this.store.announce(state, wasDeleted);
    this.store.sync.schedule(state);
  }

  private setDeleted(state: RoiState, deleted: boolean): void {
    this.store.reattach(state);
    const before = state.deleted;
    state.deleted = deleted;
    if (state.problem?.kind !== "conflict") state.problem = null;
    if (before !== deleted) this.store.total += deleted ? -1 : 1;
    this.store.announce(state, before);
    this.store.sync.schedule(state);
  }
}
