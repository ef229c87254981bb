/** Changes of things on a canvas: each is saved automatically and can be undone. */

import type { History } from "../history";
import type { SavedObject, SavedState, VersionOf } from "./saved_state";
import type { AppliedChange, SavedStore } from "./saved_store";
import type { SaveKind } from "./autosave";

/** Undo step of one state: fields before and after. */
export interface HistoryStep<F, T> {
  state: T;
  before: Partial<VersionOf<F>>;
  after: Partial<VersionOf<F>>;
  /** Number of versions by others that were known at this step. */
  remoteVersions: number;
}

/** `F`: the editable fields; `S`: the object of the API; `T`: its state here. */
export class Edits<F extends object, S extends SavedObject & F, T extends SavedState<F, S>> {
  constructor(
    protected readonly store: SavedStore<F, S, T>,
    protected readonly history: History,
    private readonly kind: Pick<SaveKind<F, S, T>, "noun" | "merge" | "versionOf">,
  ) {}

  /** Add and save a new object. */
  protected addNew(state: T, label: string): void {
    this.store.add(state);
    this.store.sync.schedule(state);
    const step = { state, before: onlyDeleted<F>(true), after: onlyDeleted<F>(false), remoteVersions: state.remoteVersions };
    this.record(label, step);
  }

  change(state: T, patch: Partial<F>, label: string): void {
    const step = this.stepOf(state, patch as Partial<VersionOf<F>>);
    this.apply(state, step.after);
    this.record(label, step);
  }

  /** Restore a deleted object. */
  restore(state: T): void {
    const step = this.stepOf(state, onlyDeleted<F>(false));
    this.apply(state, step.after);
    this.record(`Restore ${this.kind.noun}`, step);
  }

  remove(state: T): void {
    const step = this.stepOf(state, onlyDeleted<F>(true));
    this.apply(state, step.after);
    this.record(`Delete ${this.kind.noun}`, step);
  }

  /** Save the merge of two versions on top of theirs. Undo restores theirs, or mine if theirs was chosen. */
  merge(state: T, theirs: S, result: VersionOf<F>): void {
    const mine = state.version;
    const theirVersion = this.kind.versionOf(theirs);
    const other = this.kind.merge.isSame(result, theirVersion) ? mine : theirVersion;
    const wasDeleted = state.deleted;
    state.acceptServer(theirs);
    this.store.emitChange(state, wasDeleted);
    this.apply(state, result, 0);
    this.record("Merge two versions", { state, before: other, after: result, remoteVersions: state.remoteVersions });
  }

  /** Discard the pending changes of an object; undo restores them. */
  discard(state: T): void {
    const mine = state.version;
    const { server } = state;
    const mayBeThere = state.attempt !== null || state.problem?.kind === "conflict";
    this.store.sync.drop(state);
    if (server) {
      state.acceptServer(server);
      this.store.emitChange(state, mine.deleted);
      this.record("Discard changes", { state, before: mine, after: this.kind.versionOf(server), remoteVersions: state.remoteVersions });
    } else {
      this.store.forget(state);
      state.deleted = true;
      const step = { state, before: onlyDeleted<F>(false), after: onlyDeleted<F>(true), remoteVersions: state.remoteVersions };
      this.record(`Discard ${this.kind.noun}`, step);
    }
    if (mayBeThere || server) void this.store.fetchOne(state.id); // the server may have a newer state
  }

  protected stepOf(state: T, after: Partial<VersionOf<F>>): HistoryStep<F, T> {
    const before = Object.fromEntries(Object.entries(state.version).filter(([key]) => key in after));
    return { state, before: before as Partial<VersionOf<F>>, after, remoteVersions: state.remoteVersions };
  }

  protected record(label: string, step: HistoryStep<F, T>): void {
    const go = (isUndo: boolean) => () => {
      const applied = this.applyStep(step, isUndo);
      if (applied) this.publish(applied);
    };
    this.history.record({ label, undo: go(true), redo: go(false) });
  }

  /** Apply a history step. Returns null and raises a conflict if somebody else changed it since. */
  protected applyStep(step: HistoryStep<F, T>, isUndo: boolean): AppliedChange<T> | null {
    const { state } = step;
    const { merge } = this.kind;
    const [from, to] = isUndo ? [step.after, step.before] : [step.before, step.after];
    this.store.attachAgain(state);
    const now = state.version;
    const [base, desired] = [
      { ...now, ...from },
      { ...now, ...to },
    ];
    const isTouched = to.deleted === true || !merge.isSame(now, base);
    if (state.remoteVersions === step.remoteVersions || !isTouched || !state.server || merge.isSame(now, desired)) {
      return this.set(state, to);
    }
    step.remoteVersions = state.remoteVersions;
    state.assume(desired);
    this.store.sync.raiseConflict(state, state.server, base);
    return null;
  }

  protected apply(state: T, to: Partial<VersionOf<F>>, delayMs?: number): void {
    this.publish(this.set(state, to), delayMs);
  }

  private publish({ state, wasDeleted }: AppliedChange<T>, delayMs?: number): void {
    this.store.emitChange(state, wasDeleted);
    this.store.sync.schedule(state, delayMs);
  }

  /** Set fields; a change of a field restores a deleted object. */
  protected set(state: T, to: Partial<VersionOf<F>>): AppliedChange<T> {
    this.store.attachAgain(state);
    const wasDeleted = state.deleted;
    state.deleted = to.deleted === true;
    state.setFields(to);
    return { state, wasDeleted };
  }
}

const onlyDeleted = <F>(deleted: boolean): Partial<VersionOf<F>> => ({ deleted }) as Partial<VersionOf<F>>;
