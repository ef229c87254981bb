/**
 * Autosave. Each object is saved by one request at a time until the server has the user's state; a change during a
 * request is sent afterwards. Nothing is discarded: changes that could not be sent are kept on this computer and sent
 * again in their original order, with growing pauses; refused changes stay with the reason. A request without an answer
 * is repeated unchanged.
 */

import { backOffS } from "../back_off";
import { Emitter } from "../events";
import { ApiError } from "../http";
import { randomUuid } from "../uuid";
import type { Attempt, SavedObject, SavedState, Step, VersionOf } from "./saved_state";

/** Longer than the pauses within one edit, short enough not to be waited for. */
const DEBOUNCE_MS = 600;

export type SaveStatus = "saved" | "saving" | "retry" | "refused" | "conflict";

/** The state of a queue in one line. */
export interface SaveReport {
  status: SaveStatus;
  message: string;
  pending: number;
}

export interface Conflict<F extends object, S extends SavedObject & F, T extends SavedState<F, S>> {
  state: T;
  theirs: S;
  /** Common ancestor of both versions; null if unknown. */
  base: VersionOf<F> | null;
}

/** One change of several that are sent together. */
interface BatchStep {
  do: string;
}

/** Saving of one kind of object. */
export interface SaveKind<F extends object, S extends SavedObject & F, T extends SavedState<F, S>> {
  /** Name of the kind in messages. */
  noun: string;
  merge: { isSame: (a: VersionOf<F>, b: VersionOf<F>) => boolean };
  versionOf: (object: S) => VersionOf<F>;
  /** Fields that a request carries. */
  bodyOf: (state: T, step: Step) => Partial<F>;
  create: (state: T, body: Partial<F>, key: string) => Promise<S>;
  update: (id: string, version: number, body: Partial<F>, key: string) => Promise<S>;
  restore: (id: string, version: number, body: Partial<F>, key: string) => Promise<S>;
  /** The version after the deletion if the server states it, else null. */
  remove: (id: string, version: number, key: string) => Promise<number | null>;
  get: (id: string) => Promise<S>;
  /** Codes of 409 errors that the user cannot resolve. */
  refusals: string[];
  /** Sends several changes in one atomic request; null if changes are sent individually. */
  batch: {
    stepOf: (state: T) => BatchStep;
    sentFieldsOf: (state: T) => Partial<F>;
    send: (steps: BatchStep[], key: string) => Promise<S[]>;
  } | null;
}

/** Several changes in one request, repeated unchanged if its answer is lost. */
interface Batch<F, T> {
  key: string;
  states: T[];
  steps: BatchStep[];
  sent: Partial<F>[];
}

interface SyncEvents<F extends object, S extends SavedObject & F, T extends SavedState<F, S>> {
  /** The server's answer changed what the page shows. */
  adopted: T;
  /** The change could not be saved; `problem` says why. */
  troubled: T;
  /** The server confirmed the change; version and area are current. */
  confirmed: T;
  /** The change is unsaved and is to be stored locally in its current form. */
  waiting: T;
  /** The object has no pending change any more. */
  settled: T;
  conflict: Conflict<F, S, T>;
  status: SaveReport;
}

/** State of a queue that the page shows, for any kind of object. */
export interface SaveQueue {
  readonly report: SaveReport;
  readonly isSafeToLeave: boolean;
  finish: (timeoutMs: number) => Promise<void>;
  idle: () => Promise<void>;
  retryNow: () => void;
  onStatus: (listener: (report: SaveReport) => void) => void;
}

/** `F`: the editable fields; `S`: the object of the API; `T`: its state here. */
export class Autosave<F extends object, S extends SavedObject & F, T extends SavedState<F, S>> extends Emitter<SyncEvents<F, S, T>> implements SaveQueue {
  private readonly open = new Set<T>();
  /** The server did not answer: all changes wait for one timer and are then sent in order. */
  private isOffline = false;
  private failures = 0;
  private offlineTimer: ReturnType<typeof setTimeout> | null = null;
  private unanswered: Batch<F, T>[] = [];
  /** True if all pending changes would survive leaving this page. */
  isStoredLocally: () => boolean = () => false;

  /** After `leaving` is aborted no request is started; pending changes are sent at the next visit of the image. */
  constructor(
    private readonly kind: SaveKind<F, S, T>,
    private readonly leaving: AbortSignal = new AbortController().signal,
  ) {
    super();
    const options = { signal: leaving };
    leaving.addEventListener("abort", () => this.stopTimers());
    addEventListener("online", () => this.retryNow(), options);
    addEventListener("focus", () => this.isOffline && this.retryNow(), options); // back from signing in elsewhere
    addEventListener("beforeunload", (event) => {
      if (this.pendingCount === 0) return;
      this.flush();
      if (!this.isStoredLocally()) event.preventDefault();
    }, options);
  }

  /** True if leaving this image loses nothing. */
  get isSafeToLeave(): boolean {
    return this.pendingCount === 0 || this.isStoredLocally();
  }

  /** Send pending changes now; resolves when the server has answered, cannot be reached, or after `timeoutMs`. */
  finish(timeoutMs: number): Promise<void> {
    this.flush();
    return new Promise((resolve) => {
      const timer = setTimeout(() => finish(), timeoutMs);
      const finish = (): void => {
        clearTimeout(timer);
        stopListening();
        resolve();
      };
      const check = (): void => {
        if (this.isOffline || !this.isSending) finish();
      };
      const stopListening = this.on("status", () => queueMicrotask(check)); // a failure is reported before it has ended
      check();
    });
  }

  /** Resolves when no request is under way. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      const stopListening = this.on("status", () => queueMicrotask(() => check()));
      const check = (): void => {
        if ([...this.open].some((state) => state.inFlight && !this.isUnanswered(state))) return;
        stopListening();
        resolve();
      };
      check();
    });
  }

  private isUnanswered(state: T): boolean {
    return this.unanswered.some(({ states }) => states.includes(state));
  }

  private get isSending(): boolean {
    return [...this.open].some(({ timer, inFlight }) => timer !== null || inFlight);
  }

  private stopTimers(): void {
    if (this.offlineTimer) clearTimeout(this.offlineTimer);
    for (const state of this.open) {
      if (state.timer) clearTimeout(state.timer);
      state.timer = null;
    }
  }

  get pendingCount(): number {
    return this.open.size;
  }

  get waiting(): T[] {
    return [...this.open];
  }

  schedule(state: T, delayMs = DEBOUNCE_MS): void {
    this.open.add(state);
    this.emit("waiting", state);
    if (state.timer) clearTimeout(state.timer);
    state.timer = this.leaving.aborted ? null : setTimeout(() => void this.push(state), delayMs);
    this.publishReport();
  }

  /** Send many changes in one atomic request; if it fails, each is sent separately. */
  scheduleBatch(states: T[]): void {
    for (const state of states) {
      this.open.add(state);
      this.emit("waiting", state);
    }
    if (this.isOffline) this.publishReport();
    else void this.pushBatch(states);
  }

  private async pushBatch(states: T[]): Promise<void> {
    const { batch } = this.kind;
    if (!batch) return states.forEach((state) => this.schedule(state, 0));
    const ready = states.filter((state) => !state.inFlight && !state.problem && !state.attempt && state.nextStep);
    for (const state of states) if (ready.length < 2 || !ready.includes(state)) this.schedule(state, 0);
    if (ready.length < 2) return;
    await this.sendBatch({ key: randomUuid(), states: ready, steps: ready.map(batch.stepOf), sent: ready.map(batch.sentFieldsOf) });
  }

  private async sendBatch(batch: Batch<F, T>): Promise<void> {
    const { key, states, steps, sent } = batch;
    for (const state of states) {
      if (state.timer) clearTimeout(state.timer);
      state.timer = null;
      state.inFlight = true;
    }
    this.publishReport();
    try {
      const objects = (await this.kind.batch?.send(steps, key)) ?? [];
      states.forEach((state, index) => this.adoptStep(state, steps[index] as BatchStep, objects[index] as S, sent[index] ?? {}));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      for (const state of states) {
        state.inFlight = isRetryable(error); // counts as in flight until it is answered, as it may have been applied
        if (isRetryable(error)) state.problem = { kind: "retry", message: errorText(error, this.kind.noun) };
        else this.schedule(state, 0);
        this.emit("troubled", state);
      }
      if (isRetryable(error)) {
        this.unanswered.push(batch);
        this.backOff(error);
      }
      return this.publishReport();
    }
    this.failures = 0;
    for (const state of states) {
      state.inFlight = false;
      if (state.problem?.kind === "retry") state.problem = null;
      this.emit("confirmed", state);
      void this.push(state);
    }
  }

  private adoptStep(state: T, step: BatchStep, object: S, sent: Partial<F>): void {
    const isUndone = (step.do === "delete") !== (object.deleted_at !== null); // by others, before it was sent again
    if (isUndone) this.raiseConflict(state, object);
    else if (object.deleted_at === null) this.adopt(state, object, sent);
    else state.server = object;
  }

  /** Send pending changes now. */
  flush(): void {
    for (const state of this.open) if (state.timer) this.schedule(state, 0);
  }

  retryNow(): void {
    for (const state of this.open) {
      if (state.problem?.kind === "retry" || state.problem?.kind === "refused") state.problem = null;
      else if (!this.isOffline) continue;
      if (!this.isOffline) this.schedule(state, 0);
    }
    if (this.isOffline) this.replayIn(0);
  }

  /** Stop sending changes of an object that was discarded here. */
  drop(state: T): void {
    if (state.timer) clearTimeout(state.timer);
    Object.assign(state, { timer: null, attempt: null, problem: null });
    this.forget(this.unanswered.filter(({ states }) => states.includes(state)));
    this.settle(state);
    this.publishReport();
  }

  /** Stop repeating batches; their pending changes are sent individually. */
  private forget(batches: Batch<F, T>[]): void {
    this.unanswered = this.unanswered.filter((batch) => !batches.includes(batch));
    for (const state of batches.flatMap(({ states }) => states)) state.inFlight = false;
  }

  /** Raise a conflict for the user between the local and the server's version. */
  raiseConflict(state: T, theirs: S, base: VersionOf<F> | null = state.server && this.kind.versionOf(state.server)): void {
    this.open.add(state);
    state.attempt = null;
    state.problem = { kind: "conflict", message: `Someone else changed this ${this.kind.noun}.` };
    this.emit("waiting", state);
    this.emit("conflict", { state, theirs, base });
    this.publishReport();
  }

  private replayIn(ms: number): void {
    this.isOffline = true;
    if (this.offlineTimer) clearTimeout(this.offlineTimer);
    this.offlineTimer = this.leaving.aborted ? null : setTimeout(() => void this.replay(), ms);
  }

  private get isWaiting(): boolean {
    return this.offlineTimer !== null;
  }

  /** Send all pending changes in order, up to the first that the server does not answer. */
  private async replay(): Promise<void> {
    this.offlineTimer = null;
    for (let count = this.unanswered.length; count > 0; count -= 1) {
      const batch = this.unanswered.shift();
      if (batch) await this.sendBatch(batch);
      if (this.isWaiting || this.leaving.aborted) return;
    }
    for (const state of this.open) {
      if (state.problem?.kind === "retry") state.problem = null;
      await this.push(state, true);
      if (this.isWaiting || this.leaving.aborted) return;
    }
    this.isOffline = false;
    for (const state of this.open) {
      const isPending = !state.timer && !state.inFlight && !state.problem; // it became due while others were sent
      if (isPending) this.schedule(state, 0);
    }
    this.publishReport();
  }

  private async push(state: T, isReplay = false): Promise<void> {
    if (state.timer) clearTimeout(state.timer);
    state.timer = null;
    if (state.inFlight || (this.isOffline && !isReplay)) return this.publishReport();
    if (state.problem?.kind === "conflict" || state.problem?.kind === "refused") return this.publishReport();
    const step = state.nextStep;
    if (step === null) {
      this.settle(state);
      return this.publishReport();
    }
    if (this.leaving.aborted) return this.publishReport();
    state.inFlight = true;
    const attempt = (state.attempt ??= { key: randomUuid(), step, body: this.kind.bodyOf(state, step) });
    this.emit("waiting", state);
    this.publishReport();
    try {
      await this.perform(state, attempt);
      this.failures = 0;
      state.attempt = null;
      state.problem = null;
    } catch (error) {
      await this.handleFailure(state, step, error);
      this.emit("waiting", state);
      this.emit("troubled", state);
      return this.publishReport();
    } finally {
      state.inFlight = false;
    }
    this.emit("confirmed", state);
    return this.push(state, isReplay);
  }

  private settle(state: T): void {
    this.open.delete(state);
    this.emit("settled", state);
  }

  private async perform(state: T, { key, step, body }: Attempt<F>): Promise<void> {
    const { kind } = this;
    if (step === "create") return this.adopt(state, await kind.create(state, body, key), body);
    const server = state.server as S;
    if (step === "update") return this.adopt(state, await kind.update(state.id, server.version, body, key), body);
    if (step === "restore") return this.adopt(state, await kind.restore(state.id, server.version, body, key), body);
    const version = await kind.remove(state.id, server.version, key);
    const deletedAt = new Date().toISOString();
    state.server = { ...server, version: version ?? server.version + 1, deleted_at: deletedAt };
  }

  private adopt(state: T, object: S, sent: Partial<F>): void {
    if (state.adopt(object, sent)) this.emit("adopted", state);
  }

  private async handleFailure(state: T, step: Step, error: unknown): Promise<void> {
    if (!(error instanceof ApiError)) throw error;
    if (isRetryable(error)) return this.retryLater(state, error);
    state.attempt = null; // it was answered
    if (error.isConflict && !this.kind.refusals.includes(error.code)) return this.resolveConflict(state, error.details.current as S | undefined);
    if (step === "delete" && (error.status === 404 || error.status === 410)) {
      state.server = { ...(state.server as S), deleted_at: new Date().toISOString() };
      this.schedule(state, 0);
      return;
    }
    state.problem = { kind: "refused", message: errorText(error, this.kind.noun) };
  }

  /** Resolve a conflict with another user's change; the user decides only where both differ. */
  private async resolveConflict(state: T, current?: S): Promise<void> {
    try {
      const theirs = current ?? (await this.kind.get(state.id));
      const isAgreed = state.deleted && theirs.deleted_at !== null;
      if (!isAgreed && !this.kind.merge.isSame(state.version, this.kind.versionOf(theirs))) return this.raiseConflict(state, theirs);
      state.server = theirs;
      state.dirty.clear();
      this.schedule(state, 0);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404) state.problem = { kind: "refused", message: errorText(error, this.kind.noun) };
      else this.retryLater(state, error);
    }
  }

  private retryLater(state: T, error: ApiError): void {
    state.problem = { kind: "retry", message: errorText(error, this.kind.noun) };
    this.backOff(error);
  }

  private backOff(error: ApiError): void {
    const wait = backOffS(this.failures);
    this.failures += 1;
    this.replayIn(1000 * Math.max(wait, error.retryAfterS ?? 0));
  }

  private publishReport(): void {
    this.emit("status", this.report);
  }

  get report(): SaveReport {
    const problems = [...this.open].flatMap(({ problem }) => (problem ? [{ status: problem.kind, message: problem.message, pending: 0 }] : []));
    const saving: SaveReport = { status: this.open.size ? "saving" : "saved", message: "", pending: 0 };
    return { ...mostUrgent([saving, ...problems]), pending: this.open.size };
  }

  onStatus(listener: (report: SaveReport) => void): void {
    this.on("status", listener);
  }
}

/** The first of the most urgent reports. */
function mostUrgent(reports: SaveReport[]): SaveReport {
  const order: SaveStatus[] = ["saved", "saving", "retry", "refused", "conflict"];
  const none: SaveReport = { status: "saved", message: "", pending: 0 };
  return reports.reduce((worst, one) => (order.indexOf(one.status) > order.indexOf(worst.status) ? one : worst), none);
}

/** Several queues of one page, reported and emptied together. */
export class SaveQueues extends Emitter<{ status: SaveReport }> implements SaveQueue {
  constructor(private readonly queues: SaveQueue[]) {
    super();
    for (const queue of queues) queue.onStatus(() => this.emit("status", this.report));
  }

  get report(): SaveReport {
    const reports = this.queues.map(({ report }) => report);
    return { ...mostUrgent(reports), pending: reports.reduce((sum, { pending }) => sum + pending, 0) };
  }

  get isSafeToLeave(): boolean {
    return this.queues.every((queue) => queue.isSafeToLeave);
  }

  async finish(timeoutMs: number): Promise<void> {
    await Promise.all(this.queues.map((queue) => queue.finish(timeoutMs)));
  }

  async idle(): Promise<void> {
    await Promise.all(this.queues.map((queue) => queue.idle()));
  }

  retryNow(): void {
    for (const queue of this.queues) queue.retryNow();
  }

  onStatus(listener: (report: SaveReport) => void): void {
    this.on("status", listener);
  }
}

/** True if the server may accept it later: when it answers, or when the user has signed in again. */
const isRetryable = (error: ApiError): boolean => error.isTemporary || error.status === 401;

function errorText(error: ApiError, noun: string): string {
  if (error.code === "other-user") return "Someone else is signed in in this browser.";
  if (error.status === 401) return "You are signed out. Sign in again in another tab.";
  if (error.status === 403) return `Not allowed: ${error.message}`;
  if (error.status === 404) return `This ${noun}, or its image, is no longer there.`;
  return error.message;
}
