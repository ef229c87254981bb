/** The loaded objects of one kind on a canvas; emits events when they change. */

import { Emitter } from "../events";
import type { Autosave } from "./autosave";
import type { SavedObject, SavedState } from "./saved_state";

/** A state after a local change; `wasDeleted` is the value before. */
export interface AppliedChange<T> {
  state: T;
  wasDeleted: boolean;
}

export interface StoreEvents<T> {
  added: T[];
  changed: T;
  removed: T[];
  loaded: { total: number; windowed: boolean };
  error: string;
  /** Messages of the server about a repaired or clipped outline. */
  noted: string[];
}

export abstract class SavedStore<F extends object, S extends SavedObject & F, T extends SavedState<F, S>> extends Emitter<StoreEvents<T>> {
  readonly states = new Map<string, T>();

  constructor(readonly sync: Autosave<F, S, T>) {
    super();
    sync.on("adopted", (state) => this.emit("changed", state));
    sync.on("troubled", (state) => this.emit("changed", state));
    sync.on("confirmed", (state) => this.emit("changed", state));
  }

  protected abstract stateOf(object: S): T;

  /** Load an object that is referred to elsewhere; does nothing if it does not exist. */
  abstract fetchOne(id: string): Promise<void>;

  existingObjects(): T[] {
    return [...this.states.values()].filter((state) => !state.deleted);
  }

  get(id: string | null): T | null {
    return (id && this.states.get(id)) || null;
  }

  merge(objects: S[]): void {
    const added: T[] = [];
    for (const object of objects) {
      const known = this.states.get(object.id);
      if (!known) {
        const state = this.stateOf(object);
        this.states.set(object.id, state);
        if (!state.deleted) added.push(state);
      } else if (known.isSettled && (known.server?.version ?? 0) < object.version) {
        const wasDeleted = known.deleted;
        known.acceptServer(object);
        this.emitChange(known, wasDeleted);
      }
    }
    if (added.length) this.emit("added", added);
  }

  /** Add an object that was created here. */
  add(state: T): void {
    this.states.set(state.id, state);
    this.emit("added", [state]);
  }

  /** Add an object stored on this computer, and send it. */
  addStored(state: T): void {
    if (this.states.has(state.id)) return;
    this.states.set(state.id, state);
    if (!state.deleted) this.emit("added", [state]);
    this.sync.schedule(state, 0);
  }

  /** Remove an object that was never sent. */
  forget(state: T): void {
    this.states.delete(state.id);
    this.emit("removed", [state]);
  }

  /** Add a state again that the history has but a load has removed. */
  attachAgain(state: T): void {
    const present = this.states.get(state.id);
    if (present === state) return;
    if (present?.server && present.server.version !== state.server?.version) state.acceptServer(present.server);
    this.states.set(state.id, state);
    this.emit("added", [state]);
  }

  /** Emit the event of a local change; `wasDeleted` is the previous value. */
  emitChange(state: T, wasDeleted: boolean): void {
    if (state.deleted && !wasDeleted) this.emit("removed", [state]);
    else if (!state.deleted && wasDeleted) this.emit("added", [state]);
    else if (!state.deleted) this.emit("changed", state);
  }

  /** Emit one event for many changes. */
  emitChanges(changed: AppliedChange<T>[]): void {
    const removed = changed.filter(({ state, wasDeleted }) => state.deleted && !wasDeleted);
    const restored = changed.filter(({ state, wasDeleted }) => !state.deleted && wasDeleted);
    if (removed.length) this.emit("removed", removed.map(({ state }) => state));
    if (restored.length) this.emit("added", restored.map(({ state }) => state));
    for (const { state, wasDeleted } of changed) if (!state.deleted && !wasDeleted) this.emit("changed", state);
  }
}
