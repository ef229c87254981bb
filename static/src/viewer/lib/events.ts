/** A small typed event emitter, by which modules of the viewer notify each other. */

type Listener<T> = (payload: T) => void;

export class Emitter<Events extends object> {
  private readonly listeners = new Map<keyof Events, Set<Listener<never>>>();

  on<K extends keyof Events>(name: K, listener: Listener<Events[K]>): () => void {
    const known = this.listeners.get(name) ?? new Set<Listener<never>>();
    known.add(listener);
    this.listeners.set(name, known);
    return () => known.delete(listener);
  }

  emit<K extends keyof Events>(name: K, payload: Events[K]): void {
    for (const listener of this.listeners.get(name) ?? []) {
      (listener as Listener<Events[K]>)(payload);
    }
  }
}
