/**
 * Changes of a person on a canvas that the server does not have yet: in IndexedDB, which outlives
 * a reload, a sign-out and a crash. Every read and write names person and canvas, so that another
 * user of the same browser neither sees nor sends it.
 */

import { randomUuid } from "./uuid";

export interface StoredDraft<T> {
  id: string;
  value: T;
}

export interface DraftShelf<T> {
  /** Drafts not used by another open tab, in order of creation. */
  getAll: () => Promise<StoredDraft<T>[]>;
  /** False if the browser cannot keep it. */
  put: (id: string, value: T) => Promise<boolean>;
  remove: (id: string) => Promise<void>;
}

interface Row {
  key: string[];
  /** Id of the tab that uses it. */
  tab: string;
  at: number;
  value: unknown;
}

const DATABASE = "tessera";
const STORE = "drafts";
const LOCK = "tessera-tab-";

/** Stored drafts of one person on one canvas. */
export class DraftStorage {
  private readonly tab = randomUuid();
  private readonly database = openDatabase();
  private last = 0;
  /** Let another visit of the image use what is stored here. */
  release: () => void = () => undefined;

  constructor(
    private readonly user: string,
    private readonly canvas: string,
  ) {
    const isReleased = new Promise<void>((resolve) => (this.release = resolve));
    // held until the image or the tab is closed; not available without TLS
    void locks()?.request(LOCK + this.tab, () => isReleased);
  }

  shelf<T>(kind: string): DraftShelf<T> {
    const key = (id: string): string[] => [this.user, this.canvas, kind, id];
    return {
      getAll: async () => {
        const range = IDBKeyRange.bound([this.user, this.canvas, kind], [this.user, this.canvas, kind, []]);
        const rows = (await this.run("readonly", (store) => store.getAll(range))) as Row[] | null;
        const busy = await busyTabs();
        const free = (rows ?? []).filter(({ tab }) => tab === this.tab || !busy.has(LOCK + tab));
        return free.sort((a, b) => a.at - b.at).map((row) => ({ id: row.key[3] ?? "", value: row.value as T }));
      },
      put: async (id, value) => this.put(key(id), value),
      remove: async (id) => {
        await this.run("readwrite", (store) => store.delete(key(id)));
      },
    };
  }

  /** An existing row keeps its place in the order. */
  private async put(key: string[], value: unknown): Promise<boolean> {
    this.last = Math.max(Date.now(), this.last + 1);
    const at = this.last;
    const stored = await this.run("readwrite", (store) => {
      const known = store.get(key) as IDBRequest<Row | undefined>;
      known.onsuccess = () => store.put({ key, tab: this.tab, at: known.result?.at ?? at, value } satisfies Row);
      return known;
    });
    return stored !== null;
  }

  /** Result of a committed transaction; null if the browser stores nothing (private window, full disk). */
  private async run(mode: IDBTransactionMode, ask: (store: IDBObjectStore) => IDBRequest): Promise<unknown> {
    const database = await this.database;
    if (!database) return null;
    return new Promise((resolve) => {
      try {
        const transaction = database.transaction(STORE, mode);
        const request = ask(transaction.objectStore(STORE));
        transaction.oncomplete = () => resolve(request.result ?? true);
        transaction.onabort = () => resolve(null);
      } catch {
        resolve(null); // the database was closed, or the value cannot be copied
      }
    });
  }
}

function locks(): LockManager | undefined {
  return "locks" in navigator ? navigator.locks : undefined;
}

async function busyTabs(): Promise<Set<string>> {
  const held = (await locks()?.query())?.held ?? [];
  return new Set(held.map(({ name }) => name ?? ""));
}

function openDatabase(): Promise<IDBDatabase | null> {
  return new Promise((resolve) => {
    try {
      const request = indexedDB.open(DATABASE, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "key" });
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
}
