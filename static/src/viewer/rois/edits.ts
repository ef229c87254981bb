/** What the user does to ROIs: every change goes through here, is saved by itself and can be undone. */

import type { History } from "../lib/history";
import { randomUuid } from "../lib/uuid";
import type { FrameRef, Roi, RoiGeometry } from "../lib/types";
import type { RoiPatch } from "./api";
import { RoiState } from "./state";
import type { RoiStore } from "./store";

export class RoiEdits {
  constructor(
    private readonly store: RoiStore,
    private readonly history: History,
  ) {}

  create(geometry: RoiGeometry, label: string | null, frame: FrameRef | null): RoiState {
    const state = new RoiState(randomUuid(), frame, { geometry, label, name: "" });
    this.store.add(state);
    this.store.sync.schedule(state);
    this.history.record({
      label: "Draw ROI",
      undo: () => this.setDeleted(state, true),
      redo: () => this.setDeleted(state, false),
    });
    return state;
  }

  change(state: RoiState, patch: RoiPatch, label: string): void {
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
    this.setDeleted(state, true);
    this.history.record({
      label: "Delete ROI",
      undo: () => this.setDeleted(state, false),
      redo: () => this.setDeleted(state, true),
    });
  }

  /** The user keeps their own version: send it on top of the other. */
  keepMine(state: RoiState, theirs: Roi): void {
    state.server = theirs;
    state.problem = null;
    this.store.sync.schedule(state, 0);
  }

  /** The user takes the other version; undo brings their own back. */
  takeTheirs(state: RoiState, theirs: Roi): void {
    const { geometry, label, name } = state;
    const mine = { geometry, label, name };
    const wasDeleted = state.deleted;
    state.takeServer(theirs);
    this.store.announce(state, wasDeleted);
    this.store.sync.schedule(state, 0);
    const { geometry: g, label: l, name: n } = theirs;
    this.history.record({
      label: "Take the other version",
      undo: () => (wasDeleted ? this.setDeleted(state, true) : this.apply(state, mine)),
      redo: () => {
        this.setDeleted(state, theirs.deleted_at !== null);
        this.apply(state, { geometry: g, label: l, name: n });
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
