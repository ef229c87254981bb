/**
 * Autosave. Each ROI is brought to the server one request at a time until the server has what the
 * user wants; a change made meanwhile is sent afterwards. Nothing is dropped: what could not be
 * sent is kept on this computer and sent again in the order in which it was made, later each time;
 * what was refused stays with the reason. A request whose answer was lost is sent again as it was.
 */

import { roiCreate, roiDelete, roiGet, roiRestore, roisChange, roiUpdate } from "./api";
import type { RoiPatch, RoiStep } from "./api";
import { bodyOf, sentOf, stepOf } from "./steps";
import { ApiError } from "../../lib/http";
import { Emitter } from "../../lib/events";
import { randomUuid } from "../../lib/uuid";
import { sameVersion } from "./merge";
import { versionOf } from "./state";
import type { Attempt, RoiState, Step, Version } from "./state";
import type { Roi } from "../../lib/types";

/** Longer than the pauses within one edit, short enough not to be waited for. */
const DEBOUNCE_MS = 600;
/** Waits between attempts; the last one repeats. */
const BACK_OFF_S = [1, 2, 4, 8, 15, 30];

export type SaveStatus = "saved" | "saving" | "retry" | "refused" | "conflict";

export interface Conflict {
  state: RoiState;
  theirs: Roi;
  /** What both began with; null where nobody knows. */
  base: Version | null;
}

/** Changes of many as they were sent: to be sent again unchanged where the answer was lost. */
interface Batch {
  key: string;
  states: RoiState[];
  steps: RoiStep[];
  sent: RoiPatch[];
}

interface SyncEvents {
  /** The server's answer changed what the page shows. */
  adopted: RoiState;
  /** Could not be saved; `problem` says why. */
  troubled: RoiState;
  /** Confirmed: version, area and the like are fresh. */
  confirmed: RoiState;
  /** Not saved yet, and as it now is: to be kept on this computer. */
  waiting: RoiState;
  /** Nothing of it waits any more. */
  settled: RoiState;
  conflict: Conflict;
  status: { status: SaveStatus; message: string; pending: number };
}

export class RoiSync extends Emitter<SyncEvents> {
  private readonly open = new Set<RoiState>();
  /** The server did not answer: everything waits for one timer, and then goes in order. */
  private isDown = false;
  private failures = 0;
  private downTimer: ReturnType<typeof setTimeout> | null = null;
  private unanswered: Batch[] = [];
  /** True where all that waits would outlive this page. */
  isKept: () => boolean = () => false;

  constructor(private readonly canvas: string) {
    super();
    addEventListener("online", () => this.retryNow());
    addEventListener("focus", () => this.isDown && this.retryNow()); // back from signing in elsewhere
    addEventListener("beforeunload", (event) => {
      if (this.pendingCount === 0) return;
      this.flush();
      if (!this.isKept()) event.preventDefault();
    });
  }

  get pendingCount(): number {
    return this.open.size;
  }

  get waiting(): RoiState[] {
    return [...this.open];
  }

  schedule(state: RoiState, delayMs = DEBOUNCE_MS): void {
    this.open.add(state);
    this.emit("waiting", state);
    if (state.timer) clearTimeout(state.timer);
    state.timer = setTimeout(() => void this.push(state), delayMs);
    this.report();
  }

  /** Send the changes of many at once: all are saved, or none, and then each goes by itself. */
  together(states: RoiState[]): void {
    for (const state of states) {
      this.open.add(state);
      this.emit("waiting", state);
    }
    if (this.isDown) this.report();
    else void this.pushTogether(states);
  }

  private async pushTogether(states: RoiState[]): Promise<void> {
    const ready = states.filter((state) => !state.inFlight && !state.problem && !state.attempt && state.nextStep);
    for (const state of states) if (ready.length < 2 || !ready.includes(state)) this.schedule(state, 0);
    if (ready.length < 2) return;
    await this.sendBatch({ key: randomUuid(), states: ready, steps: ready.map(stepOf), sent: ready.map(sentOf) });
  }

  private async sendBatch(batch: Batch): Promise<void> {
    const { key, states, steps, sent } = batch;
    for (const state of states) {
      if (state.timer) clearTimeout(state.timer);
      state.timer = null;
      state.inFlight = true;
    }
    this.report();
    try {
      const rois = await roisChange(this.canvas, steps, key);
      states.forEach((state, index) => this.adoptStep(state, steps[index] as RoiStep, rois[index] as Roi, sent[index] ?? {}));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      for (const state of states) {
        state.inFlight = isLater(error); // under way until it is answered: nobody knows what was done
        if (isLater(error)) state.problem = { kind: "retry", message: refusalText(error) };
        else this.schedule(state, 0);
        this.emit("troubled", state);
      }
      if (isLater(error)) {
        this.unanswered.push(batch);
        this.goDown(error);
      }
      return this.report();
    }
    this.failures = 0;
    for (const state of states) {
      state.inFlight = false;
      if (state.problem?.kind === "retry") state.problem = null;
      this.emit("confirmed", state);
      void this.push(state);
    }
  }

  private adoptStep(state: RoiState, step: RoiStep, roi: Roi, sent: RoiPatch): void {
    const isUndone = (step.do === "delete") !== (roi.deleted_at !== null); // by others, before it was sent again
    if (isUndone) this.meet(state, roi);
    else if (roi.deleted_at === null) this.adopt(state, roi, sent);
    else state.server = roi;
  }

  /** Send at once what is waiting. */
  flush(): void {
    for (const state of this.open) if (state.timer) this.schedule(state, 0);
  }

  retryNow(): void {
    for (const state of this.open) {
      if (state.problem?.kind === "retry" || state.problem?.kind === "refused") state.problem = null;
      else if (!this.isDown) continue;
      if (!this.isDown) this.schedule(state, 0);
    }
    if (this.isDown) this.replayIn(0);
  }

  /** Send nothing more of it: it was discarded here. */
  drop(state: RoiState): void {
    if (state.timer) clearTimeout(state.timer);
    Object.assign(state, { timer: null, attempt: null, problem: null });
    this.forget(this.unanswered.filter(({ states }) => states.includes(state)));
    this.settle(state);
    this.report();
  }

  /** No longer send these as they were: what is still wanted of them goes one by one. */
  private forget(batches: Batch[]): void {
    this.unanswered = this.unanswered.filter((batch) => !batches.includes(batch));
    for (const state of batches.flatMap(({ states }) => states)) state.inFlight = false;
  }

  /** Ask the user to decide between what is wanted here and what stands there. */
  meet(state: RoiState, theirs: Roi, base: Version | null = state.server && versionOf(state.server)): void {
    this.open.add(state);
    state.attempt = null;
    state.problem = { kind: "conflict", message: "Someone else changed this ROI." };
    this.emit("waiting", state);
    this.emit("conflict", { state, theirs, base });
    this.report();
  }

  private replayIn(ms: number): void {
    this.isDown = true;
    if (this.downTimer) clearTimeout(this.downTimer);
    this.downTimer = setTimeout(() => void this.replay(), ms);
  }

  private get isTimed(): boolean {
    return this.downTimer !== null;
  }

  /** All that waits, in the order in which it came, up to the first that the server does not answer. */
  private async replay(): Promise<void> {
    this.downTimer = null;
    for (let count = this.unanswered.length; count > 0; count -= 1) {
      const batch = this.unanswered.shift();
      if (batch) await this.sendBatch(batch);
      if (this.isTimed) return;
    }
    for (const state of this.open) {
      if (state.problem?.kind === "retry") state.problem = null;
      await this.push(state, true);
      if (this.isTimed) return;
    }
    this.isDown = false;
    for (const state of this.open) {
      const isLeft = !state.timer && !state.inFlight && !state.problem; // its turn came while others were sent
      if (isLeft) this.schedule(state, 0);
    }
    this.report();
  }

  private async push(state: RoiState, isReplay = false): Promise<void> {
    if (state.timer) clearTimeout(state.timer);
    state.timer = null;
    if (state.inFlight || (this.isDown && !isReplay)) return this.report();
    if (state.problem?.kind === "conflict" || state.problem?.kind === "refused") return this.report();
    const step = state.nextStep;
    if (step === null) {
      this.settle(state);
      return this.report();
    }
    state.inFlight = true;
    const attempt = (state.attempt ??= { key: randomUuid(), step, body: bodyOf(state, step) });
    this.emit("waiting", state);
    this.report();
    try {
      await this.perform(state, attempt);
      this.failures = 0;
      state.attempt = null;
      state.problem = null;
    } catch (error) {
      await this.failed(state, step, error);
      this.emit("waiting", state);
      this.emit("troubled", state);
      return this.report();
    } finally {
      state.inFlight = false;
    }
    this.emit("confirmed", state);
    return this.push(state, isReplay);
  }

  private settle(state: RoiState): void {
    this.open.delete(state);
    this.emit("settled", state);
  }

  private async perform(state: RoiState, { key, step, body }: Attempt): Promise<void> {
    if (step === "create") {
      const { id, frame } = state;
      const made = { id, canvas: this.canvas, frame, ...state.wanted(), ...body };
      return this.adopt(state, await roiCreate(made, key), body);
    }
    const server = state.server as Roi;
    if (step === "update") return this.adopt(state, await roiUpdate(state.id, server.version, body, key), body);
    if (step === "restore") return this.adopt(state, await roiRestore(state.id, server.version, body, key), body);
    const version = await roiDelete(state.id, server.version, key);
    const deletedAt = new Date().toISOString();
    state.server = { ...server, version: version ?? server.version + 1, deleted_at: deletedAt };
  }

  private adopt(state: RoiState, roi: Roi, sent: Attempt["body"]): void {
    if (state.adopt(roi, sent)) this.emit("adopted", state);
  }

  private async failed(state: RoiState, step: Step, error: unknown): Promise<void> {
    if (!(error instanceof ApiError)) throw error;
    if (isLater(error)) return this.retryLater(state, error);
    state.attempt = null; // it was answered
    if (error.isConflict && error.code !== "roi-locked") return this.meetOther(state, error.details.current as Roi | undefined);
    if (step === "delete" && (error.status === 404 || error.status === 410)) {
      state.server = { ...(state.server as Roi), deleted_at: new Date().toISOString() };
      this.schedule(state, 0);
      return;
    }
    state.problem = { kind: "refused", message: refusalText(error) };
  }

  /** Someone else was first; where both want the same, there is nothing to ask. */
  private async meetOther(state: RoiState, current?: Roi): Promise<void> {
    try {
      const theirs = current ?? (await roiGet(state.id));
      const isAgreed = state.deleted && theirs.deleted_at !== null;
      if (!isAgreed && !sameVersion(state.version, versionOf(theirs))) return this.meet(state, theirs);
      state.server = theirs;
      state.dirty.clear();
      this.schedule(state, 0);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404) state.problem = { kind: "refused", message: refusalText(error) };
      else this.retryLater(state, error);
    }
  }

  private retryLater(state: RoiState, error: ApiError): void {
    state.problem = { kind: "retry", message: refusalText(error) };
    this.goDown(error);
  }

  private goDown(error: ApiError): void {
    const wait = BACK_OFF_S[Math.min(this.failures, BACK_OFF_S.length - 1)] ?? 0;
    this.failures += 1;
    this.replayIn(1000 * Math.max(wait, error.retryAfterS ?? 0));
  }

  report(): void {
    let status: SaveStatus = this.open.size ? "saving" : "saved";
    let message = "";
    const order: SaveStatus[] = ["saved", "saving", "retry", "refused", "conflict"];
    for (const { problem } of this.open) {
      if (problem && order.indexOf(problem.kind) > order.indexOf(status)) {
        status = problem.kind;
        message = problem.message;
      }
    }
    this.emit("status", { status, message, pending: this.open.size });
  }
}

/** The server may still take it: when it answers, or when the person has signed in again. */
const isLater = (error: ApiError): boolean => error.isTemporary || error.status === 401;

function refusalText(error: ApiError): string {
  if (error.code === "other-user") return "Someone else is signed in in this browser.";
  if (error.status === 401) return "You are signed out. Sign in again in another tab.";
  if (error.status === 403) return `Not allowed: ${error.message}`;
  if (error.status === 404) return "This ROI, or its image, is no longer there.";
  return error.message;
}
