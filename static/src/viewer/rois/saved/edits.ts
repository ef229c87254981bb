/** What the user does to ROIs: every change goes through here, is saved automatically and can be undone. */

import type { History } from "../../lib/history";
import { randomUuid } from "../../lib/uuid";
import type { FrameRef, Roi, RoiGeometry, RoiShape } from "../../lib/types";
import type { RoiPatch } from "./api";
import { shapeOf } from "../shapes/outlines";
import { withKey } from "../shapes/track";
import { differing, sameVersion } from "./merge";
import { RoiState, versionOf, whole } from "./state";
import type { Version } from "./state";
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

/** What a step of the history makes of one ROI, and what it made it from. */
interface Turn {
  state: RoiState;
  before: Partial<Version>;
  after: Partial<Version>;
  /** The count of others' versions that it knew of. */
  seen: number;
}

/** Changed here, and not told to the page yet. */
interface Done {
  state: RoiState;
  wasDeleted: boolean;
}

function turnOf(state: RoiState, after: Partial<Version>): Turn {
  const now = state.version;
  const before = Object.fromEntries(Object.keys(after).map((key) => [key, now[key as keyof Version]]));
  return { state, before, after, seen: state.foreign };
}

/** An outline changed on another frame than the ROI's own is a key frame there. */
function onFrame(state: RoiState, { geometry, shape, ...patch }: RoiPatch): RoiPatch {
  const frame = state.keyedAt;
  if (geometry && patch.track) return { ...patch, geometry, ...(shape ? { shape } : {}) };
  if (!geometry) return { ...patch, ...(shape ? { shape } : {}) };
  const outline = { geometry, shape: shape ?? shapeOf(geometry) };
  return frame ? { ...patch, track: withKey(state.tracked, frame, outline) } : { ...patch, ...outline };
}

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
    this.record("Draw ROI", { state, before: { deleted: true }, after: { deleted: false }, seen: state.foreign });
    return state;
  }

  change(state: RoiState, given: RoiPatch, label: string): void {
    if (given.locked === undefined && this.isLocked([state])) return;
    const turn = turnOf(state, onFrame(state, whole(given)));
    this.apply(state, turn.after);
    this.record(label, turn);
  }

  /** A step of the history that was recorded elsewhere: made, and not recorded again. */
  replay(state: RoiState, patch: RoiPatch): void {
    if (!this.isLocked([state])) this.apply(state, patch);
  }

  remove(state: RoiState): void {
    if (this.isLocked([state])) return;
    const turn = turnOf(state, { deleted: true });
    this.apply(state, turn.after);
    this.record("Delete ROI", turn);
  }

  /** One step of the history and one request, over many ROIs; false where one of them is locked. */
  together(label: string, changes: Change[]): boolean {
    if (this.isLocked(changes.filter(({ patch }) => patch?.locked === undefined).map(({ state }) => state))) return false;
    const turns = changes.map(({ state, patch, deleted }) =>
      turnOf(state, { ...onFrame(state, whole(patch ?? {})), ...(deleted === undefined ? {} : { deleted }) }),
    );
    this.tellAll(turns.map(({ state, after }) => this.set(state, after)));
    const go = (isUndo: boolean) => () => this.tellAll(turns.flatMap((turn) => this.turn(turn, isUndo) ?? []));
    this.history.record({ label, undo: go(true), redo: go(false) });
    return true;
  }

  private tellAll(done: Done[]): void {
    this.store.announceAll(done);
    this.store.sync.together(done.map(({ state }) => state));
  }

  private isLocked(states: RoiState[]): boolean {
    const locked = states.filter((state) => state.locked && !state.deleted).length;
    if (locked) this.refused(locked === 1 ? "The ROI is locked." : `${locked} of the ROIs are locked.`);
    return locked > 0;
  }

  /** Bring back one that was deleted. */
  restore(state: RoiState): void {
    const turn = turnOf(state, { deleted: false });
    this.apply(state, turn.after);
    this.record("Restore ROI", turn);
  }

  /** What the user chose of two versions is sent as one on top of theirs. Undo goes to theirs, or back to mine. */
  merge(state: RoiState, theirs: Roi, result: Version): void {
    const mine = state.version;
    const other = sameVersion(result, versionOf(theirs)) ? mine : versionOf(theirs);
    const wasDeleted = state.deleted;
    state.takeServer(theirs);
    this.store.announce(state, wasDeleted);
    this.apply(state, result, 0);
    this.record("Merge two versions", { state, before: other, after: result, seen: state.foreign });
  }

  /** Drop what waits of an ROI on this computer; undo takes it up again. */
  discard(state: RoiState): void {
    const mine = state.version;
    const { server } = state;
    const mayBeThere = state.attempt !== null || state.problem?.kind === "conflict";
    this.store.sync.drop(state);
    if (server) {
      state.takeServer(server);
      this.store.announce(state, mine.deleted);
      this.record("Discard changes", { state, before: mine, after: versionOf(server), seen: state.foreign });
    } else {
      this.store.forget(state);
      state.deleted = true;
      this.record("Discard ROI", { state, before: { deleted: false }, after: { deleted: true }, seen: state.foreign });
    }
    if (mayBeThere || server) void this.store.fetchOne(state.id); // the server may have more than we know
  }

  private record(label: string, turn: Turn): void {
    const go = (isUndo: boolean) => () => {
      const done = this.turn(turn, isUndo);
      if (done) this.tell(done);
    };
    this.history.record({ label, undo: go(true), redo: go(false) });
  }

  /** One step of the history. Null where somebody else changed the ROI since: then the user is asked instead. */
  private turn(turn: Turn, isUndo: boolean): Done | null {
    const { state } = turn;
    const [from, to] = isUndo ? [turn.after, turn.before] : [turn.before, turn.after];
    this.store.reattach(state);
    const now = state.version;
    const [base, wanted] = [
      { ...now, ...from },
      { ...now, ...to },
    ];
    const isTouched = to.deleted === true || differing(now, base).length > 0;
    if (state.foreign === turn.seen || !isTouched || !state.server || sameVersion(now, wanted)) {
      return this.set(state, to);
    }
    turn.seen = state.foreign;
    this.store.sync.meet(Object.assign(state, wanted), state.server, base);
    return null;
  }

  private apply(state: RoiState, to: Partial<Version>, delayMs?: number): void {
    this.tell(this.set(state, to), delayMs);
  }

  private tell({ state, wasDeleted }: Done, delayMs?: number): void {
    this.store.announce(state, wasDeleted);
    this.store.sync.schedule(state, delayMs);
  }

  /** A change of a field brings a deleted ROI back. */
  private set(state: RoiState, { deleted, ...patch }: Partial<Version>): Done {
    this.store.reattach(state);
    const wasDeleted = state.deleted;
    state.deleted = deleted ?? false;
    state.want(patch);
    if (wasDeleted !== state.deleted) this.store.countedBy(state.deleted ? -1 : 1);
    return { state, wasDeleted };
  }
}
