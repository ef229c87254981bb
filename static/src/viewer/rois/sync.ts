/**
 * Autosave. Each ROI is brought to the server one request at a time until the server has what the
 * user wants; a change made meanwhile is sent afterwards. Nothing is dropped: what could not be
 * sent is tried again, later each time; what was refused stays on the page with the reason.
 */

import { roiCreate, roiDelete, roiGet, roiRestore, roisChange, roiUpdate } from "./api";
import type { RoiPatch, RoiStep } from "./api";
import { ApiError } from "../lib/http";
import { Emitter } from "../lib/events";
import type { RoiState, Step } from "./state";
import type { Roi } from "../lib/types";

/** Longer than the pauses within one edit, short enough not to be waited for. */
const DEBOUNCE_MS = 600;
/** Waits between attempts; the last one repeats. */
const BACK_OFF_S = [1, 2, 4, 8, 15, 30];

export type SaveStatus = "saved" | "saving" | "retry" | "refused" | "conflict";

interface SyncEvents {
  /** The server's answer changed what the page shows. */
  adopted: RoiState;
  /** Could not be saved; `problem` says why. */
  troubled: RoiState;
  /** Confirmed: version, area and the like are fresh. */
  confirmed: RoiState;
  conflict: { state: RoiState; theirs: Roi };
  status: { status: SaveStatus; message: string; pending: number };
}

export class RoiSync extends Emitter<SyncEvents> {
  private readonly open = new Set<RoiState>();

  constructor(private readonly canvas: string) {
    super();
    addEventListener("online", () => this.retryNow());
    addEventListener("beforeunload", (event) => {
      if (this.pendingCount === 0) return;
      this.flush();
      event.preventDefault();
    });
  }

  get pendingCount(): number {
    return this.open.size;
  }

  schedule(state: RoiState, delayMs = DEBOUNCE_MS): void {
    this.open.add(state);
    if (state.timer) clearTimeout(state.timer);
    state.timer = setTimeout(() => void this.push(state), delayMs);
    this.report();
  }

  /** Send the changes of many at once: all are saved, or none, and then each goes by itself. */
  together(states: RoiState[]): void {
    for (const state of states) this.open.add(state);
    void this.pushTogether(states);
  }

  private async pushTogether(states: RoiState[]): Promise<void> {
    const ready = states.filter((state) => !state.inFlight && !state.problem && state.nextStep !== null);
    for (const state of states) if (ready.length < 2 || !ready.includes(state)) this.schedule(state, 0);
    if (ready.length < 2) return;
    const sent = ready.map((state) => state.patch());
    for (const state of ready) {
      if (state.timer) clearTimeout(state.timer);
      state.timer = null;
      state.inFlight = true;
    }
    this.report();
    try {
      const rois = await roisChange(this.canvas, ready.map(stepOf));
      ready.forEach((state, index) => this.adoptStep(state, rois[index] as Roi, sent[index] ?? {}));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      for (const state of ready) {
        state.inFlight = false;
        if (error.isTemporary) this.retryLater(state, error);
        else this.schedule(state, 0);
      }
      return this.report();
    }
    for (const state of ready) {
      state.inFlight = false;
      this.emit("confirmed", state);
      void this.push(state);
    }
  }

  private adoptStep(state: RoiState, roi: Roi, sent: RoiPatch): void {
    if (roi.deleted_at === null) this.adopt(state, roi, sent);
    else state.server = roi;
  }

  /** Send at once what is waiting. */
  flush(): void {
    for (const state of this.open) if (state.timer) this.schedule(state, 0);
  }

  retryNow(): void {
    for (const state of this.open) {
      if (state.problem?.kind === "retry" || state.problem?.kind === "refused") {
        state.problem = null;
        this.schedule(state, 0);
      }
    }
  }

  private async push(state: RoiState): Promise<void> {
    state.timer = null;
    if (state.inFlight || state.problem?.kind === "conflict" || state.problem?.kind === "refused") {
      return this.report();
    }
    const step = state.nextStep;
    if (step === null) {
      this.open.delete(state);
      return this.report();
    }
    state.inFlight = true;
    this.report();
    try {
      await this.perform(state, step);
      state.attempts = 0;
      state.problem = null;
    } catch (error) {
      await this.failed(state, step, error);
      this.emit("troubled", state);
      return this.report();
    } finally {
      state.inFlight = false;
    }
    this.emit("confirmed", state);
    return this.push(state);
  }

  private async perform(state: RoiState, step: Step): Promise<void> {
    if (step === "create") {
      const { id, frame } = state;
      const sent = state.wanted();
      this.adopt(state, await roiCreate({ id, canvas: this.canvas, frame, ...sent }), sent);
      return;
    }
    const server = state.server as Roi;
    if (step === "update") {
      const sent = state.patch();
      this.adopt(state, await roiUpdate(state.id, server.version, sent), sent);
    } else if (step === "restore") {
      this.adopt(state, await roiRestore(state.id, server.version), null);
    } else {
      const version = await roiDelete(state.id, server.version);
      const deletedAt = new Date().toISOString();
      state.server = { ...server, version: version ?? server.version + 1, deleted_at: deletedAt };
    }
  }

  private adopt(state: RoiState, roi: Roi, sent: ReturnType<RoiState["patch"]> | null): void {
    if (state.adopt(roi, sent)) this.emit("adopted", state);
  }

  private async failed(state: RoiState, step: Step, error: unknown): Promise<void> {
    if (!(error instanceof ApiError)) throw error;
    if (error.isConflict) return this.meetOther(state, step, error.details.current as Roi | undefined);
    if (error.isTemporary) return this.retryLater(state, error);
    if (step === "delete" && (error.status === 404 || error.status === 410)) {
      state.server = { ...(state.server as Roi), deleted_at: new Date().toISOString() };
      this.schedule(state, 0);
      return;
    }
    state.problem = { kind: "refused", message: refusalText(error) };
  }

  /** Someone else was first, or an earlier request of ours whose answer was lost. */
  private async meetOther(state: RoiState, step: Step, current?: Roi): Promise<void> {
    try {
      const theirs = current ?? (await roiGet(state.id));
      const isAgreed = (state.deleted && theirs.deleted_at !== null) || state.isLike(theirs);
      if (step === "create" || isAgreed) {
        state.server = theirs;
        state.inFlight = false; // the request is over: only what differs from theirs is sent
        state.want(state);
        this.schedule(state, 0);
        return;
      }
      state.problem = { kind: "conflict", message: "Someone else changed this ROI." };
      this.emit("conflict", { state, theirs });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404) state.problem = { kind: "refused", message: refusalText(error) };
      else this.retryLater(state, error);
    }
  }

  private retryLater(state: RoiState, error: ApiError): void {
    const wait = BACK_OFF_S[Math.min(state.attempts, BACK_OFF_S.length - 1)] ?? 0;
    state.attempts += 1;
    state.problem = { kind: "retry", message: error.message };
    this.schedule(state, 1000 * Math.max(wait, error.retryAfterS ?? 0));
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

function stepOf(state: RoiState): RoiStep {
  const { id, frame, server } = state;
  const step = state.nextStep ?? "update";
  if (step === "create") return { do: step, id, frame, ...state.wanted() };
  const version = server?.version ?? 0;
  return step === "update" ? { do: step, id, version, ...state.patch() } : { do: step, id, version };
}

function refusalText(error: ApiError): string {
  if (error.status === 401) return "You are signed out. Sign in again in another tab, then retry.";
  if (error.status === 403) return `Not allowed: ${error.message}`;
  if (error.status === 404) return "This ROI, or its image, is no longer there.";
  return error.message;
}
