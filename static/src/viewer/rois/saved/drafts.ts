/** What is not saved yet, kept on this computer: it outlives the page, and the next visit sends it. */

import type { Shelf } from "../../lib/shelf";
import { RoiState } from "./state";
import type { StoredEdit } from "./state";
import type { RoiStore } from "./store";

export class Drafts {
  /** What the browser has not confirmed to hold. */
  private readonly unkept = new Map<string, number>();
  private count = 0;

  constructor(
    private readonly store: RoiStore,
    private readonly shelf: Shelf<StoredEdit>,
  ) {
    store.sync.on("waiting", (state) => void this.keep(state));
    store.sync.on("settled", (state) => this.drop(state));
    store.sync.isKept = () => this.unkept.size === 0;
  }

  /** Hold and send what an earlier visit left, first to last. Returns how many there were. */
  async replay(): Promise<number> {
    const kept = await this.shelf.all();
    for (const { value } of kept) this.store.hold(RoiState.fromStored(value));
    return kept.length;
  }

  private async keep(state: RoiState): Promise<void> {
    this.count += 1;
    const mark = this.count;
    this.unkept.set(state.id, mark);
    const isDone = await this.shelf.put(state.id, state.stored());
    if (isDone && this.unkept.get(state.id) === mark) this.unkept.delete(state.id);
  }

  private drop(state: RoiState): void {
    this.unkept.delete(state.id);
    void this.shelf.remove(state.id);
  }
}
