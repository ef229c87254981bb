/** An object on a canvas: the user's state, and the state that the server last confirmed. */

export interface SaveProblem {
  /** `retry`: is retried automatically; `refused`: the user must change it; `conflict`: the user must decide. */
  kind: "retry" | "refused" | "conflict";
  message: string;
}

export type Step = "create" | "delete" | "restore" | "update";

/** A request without a response, repeated unchanged under the same idempotency key. */
export interface Attempt<F> {
  key: string;
  step: Step;
  body: Partial<F>;
}

/** The part of an API object that saving needs. */
export interface SavedObject {
  id: string;
  version: number;
  deleted_at: string | null;
}

/** Fields that users see and merge. */
export type VersionOf<F> = F & { deleted: boolean };

/** `F`: its editable fields; `S`: the object of the API. */
export abstract class SavedState<F extends object, S extends SavedObject & F> {
  deleted = false;
  server: S | null = null;
  problem: SaveProblem | null = null;
  inFlight = false;
  attempt: Attempt<F> | null = null;
  /** Number of versions by others that were applied; steps of the history compare it. */
  remoteVersions = 0;
  timer: ReturnType<typeof setTimeout> | null = null;
  /** Fields changed by the user and not confirmed by the server. */
  readonly dirty = new Set<keyof F>();

  constructor(
    readonly id: string,
    private readonly fields: readonly (keyof F)[],
  ) {}

  /** All editable fields as the user wants them. */
  abstract currentFields(): F;

  /** Set a field. */
  protected abstract take(field: keyof F, value: unknown): void;

  /** True if a field is equal in `a` and `b`. */
  protected sameField(field: keyof F, a: F, b: F): boolean {
    return a[field] === b[field];
  }

  /** The version the user wants. */
  get version(): VersionOf<F> {
    return { ...this.currentFields(), deleted: this.deleted };
  }

  /** Next request to send; null if the server is up to date. */
  get nextStep(): Step | null {
    if (this.attempt) return this.attempt.step;
    if (!this.server) return this.deleted ? null : "create";
    const isDeletedThere = this.server.deleted_at !== null;
    if (this.deleted) return isDeletedThere ? null : "delete";
    if (isDeletedThere) return "restore";
    return this.dirty.size ? "update" : null;
  }

  get isSettled(): boolean {
    return !this.inFlight && this.nextStep === null;
  }

  setFields(patch: Partial<F>): void {
    for (const field of this.fields) {
      if (patch[field] === undefined) continue;
      this.take(field, patch[field]);
      if (!this.server || this.differsFromServer(field)) this.dirty.add(field);
      else if (!this.inFlight && !this.attempt) this.dirty.delete(field);
      else this.dirty.add(field); // the sent value may be stored already
    }
    if (this.problem?.kind !== "conflict") this.problem = null;
  }

  /** Hold a version that is not to be sent before the user has decided. */
  assume(version: VersionOf<F>): void {
    for (const field of this.fields) this.take(field, version[field]);
    this.deleted = version.deleted;
  }

  patch(): Partial<F> {
    const patch: Partial<F> = {};
    const mine = this.currentFields();
    for (const field of this.dirty) patch[field] = mine[field];
    return patch;
  }

  /**
   * Take over the server's answer. A field the user changed while the answer was under way stays
   * as the user has it. Returns true if something visible changed.
   */
  adopt(object: S, sent: Partial<F> | null): boolean {
    if (this.server && object.version > this.server.version + 1) this.remoteVersions += 1;
    this.server = object;
    let changed = false;
    for (const field of this.fields) {
      const wasChangedSince = this.dirty.has(field) && (!sent || this.currentFields()[field] !== sent[field]);
      if (wasChangedSince) continue;
      this.dirty.delete(field);
      if (!this.differsFromServer(field)) continue;
      this.take(field, object[field]);
      changed = true;
    }
    return changed;
  }

  private differsFromServer(field: keyof F): boolean {
    return !this.server || !this.sameField(field, this.currentFields(), this.server);
  }

  /** Drop the unsaved changes in favour of the server's state. */
  acceptServer(object: S): void {
    this.remoteVersions += 1;
    this.attempt = null;
    this.dirty.clear();
    this.problem = null;
    this.adopt(object, null);
    this.deleted = object.deleted_at !== null;
  }
}
