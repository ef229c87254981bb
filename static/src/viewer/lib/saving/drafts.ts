/** Unsaved changes stored in the browser, sent at the next visit. */

import type { DraftShelf } from "../draft_storage";
import type { Emitter } from "../events";

interface Storable<V> {
  id: string;
  /** Form in local storage. */
  toStored: () => V;
}

interface SyncEvents<T> {
  waiting: T;
  settled: T;
}

/** A store whose unsaved changes are kept. */
interface DraftStore<T, V> {
  sync: Pick<Emitter<SyncEvents<T>>, "on"> & { isStoredLocally: () => boolean };
  /** Hold what an earlier visit stored, and send it. */
  holdStored: (value: V) => void;
}

export class Drafts<V, T extends Storable<V> = Storable<V>> {
  /** Edits whose local storage is not confirmed yet. */
  private readonly unstored = new Map<string, number>();
  private count = 0;

  constructor(
    private readonly store: DraftStore<T, V>,
    private readonly shelf: DraftShelf<V>,
  ) {
    store.sync.on("waiting", (state) => void this.keep(state));
    store.sync.on("settled", (state) => this.drop(state));
    store.sync.isStoredLocally = () => this.unstored.size === 0;
  }

  /** Hold and send what an earlier visit left, first to last. Returns how many there were. */
  async replay(): Promise<number> {
    const drafts = await this.shelf.getAll();
    for (const { value } of drafts) this.store.holdStored(value);
    return drafts.length;
  }

  private async keep(state: T): Promise<void> {
    this.count += 1;
    const mark = this.count;
    this.unstored.set(state.id, mark);
    const isDone = await this.shelf.put(state.id, state.toStored());
    if (isDone && this.unstored.get(state.id) === mark) this.unstored.delete(state.id);
  }

  private drop(state: T): void {
    this.unstored.delete(state.id);
    void this.shelf.remove(state.id);
  }
}
