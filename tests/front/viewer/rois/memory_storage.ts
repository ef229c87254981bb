import type { DraftShelf } from "@/viewer/lib/draft_storage";

/** A shelf that lasts only as long as the page. */
export function memoryShelf<T>(): DraftShelf<T> {
  const rows = new Map<string, T>();
  return {
    getAll: () => Promise.resolve([...rows].map(([id, value]) => ({ id, value }))),
    put: (id, value) => Promise.resolve(Boolean(rows.set(id, value))),
    remove: (id) => Promise.resolve(void rows.delete(id)),
  };
}
