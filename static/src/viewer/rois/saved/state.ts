/** One ROI as this page knows it: what the user wants, and what the server last confirmed. */

import type { RoiFields, RoiPatch } from "./api";
import { sameGeometry } from "../../map/pixel_plane";
import type { FrameRef, Roi, RoiGeometry, RoiShape } from "../../lib/types";

export type Field = keyof RoiPatch;
const FIELDS: Field[] = ["geometry", "shape", "label", "name", "locked"];

/** A new outline is a polygon unless it is said to be something else. */
export function whole(patch: RoiPatch): RoiPatch {
  return patch.geometry && !patch.shape ? { ...patch, shape: "polygon" } : patch;
}

export interface RoiProblem {
  /** `retry`: is tried again by itself; `refused`: the user must change it; `conflict`: the user must decide. */
  kind: "retry" | "refused" | "conflict";
  message: string;
}

export type Step = "create" | "delete" | "restore" | "update";

/** A request that was sent and not answered: it is sent again as it was, so that it is carried out once. */
export interface Attempt {
  key: string;
  step: Step;
  body: RoiPatch;
}

/** What somebody may see and choose of an ROI. */
export interface Version extends RoiFields {
  deleted: boolean;
}

/** An ROI that is not saved yet, as it is kept on this computer. */
export interface StoredEdit extends Version {
  id: string;
  frame: FrameRef | null;
  dirty: Field[];
  server: Roi | null;
  attempt: Attempt | null;
  /** Why the server does not take it. */
  refused: string | null;
}

export function versionOf(roi: Roi): Version {
  const { geometry, shape, label, name, locked } = roi;
  return { geometry, shape, label, name, locked, deleted: roi.deleted_at !== null };
}

export class RoiState {
  geometry: RoiGeometry;
  label: string | null;
  name: string;
  shape: RoiShape;
  locked: boolean;
  deleted: boolean;
  server: Roi | null = null;
  problem: RoiProblem | null = null;
  inFlight = false;
  attempt: Attempt | null = null;
  /** Counts the versions of others that were taken over: a step of the history knows what it saw. */
  foreign = 0;
  timer: ReturnType<typeof setTimeout> | null = null;
  /** What the user changed and the server has not confirmed. */
  readonly dirty = new Set<Field>();

  constructor(
    readonly id: string,
    readonly frame: FrameRef | null,
    wanted: RoiPatch & { geometry: RoiGeometry },
  ) {
    this.geometry = wanted.geometry;
    this.label = wanted.label ?? null;
    this.name = wanted.name ?? "";
    this.shape = wanted.shape ?? "polygon";
    this.locked = wanted.locked ?? false;
    this.deleted = false;
  }

  static fromServer(roi: Roi): RoiState {
    const state = new RoiState(roi.id, roi.frame, roi);
    state.server = roi;
    state.deleted = roi.deleted_at !== null;
    return state;
  }

  /** As it was kept on this computer. */
  static fromStored(stored: StoredEdit): RoiState {
    const state = new RoiState(stored.id, stored.frame, stored);
    const { deleted, server, attempt, refused } = stored;
    Object.assign(state, { deleted, server, attempt });
    for (const field of stored.dirty) state.dirty.add(field);
    if (refused !== null) state.problem = { kind: "refused", message: refused };
    return state;
  }

  stored(): StoredEdit {
    const { id, frame, server, attempt, problem } = this;
    const refused = problem?.kind === "refused" ? problem.message : null;
    return { id, frame, ...this.version, dirty: [...this.dirty], server, attempt, refused };
  }

  /** What the user wants. */
  get version(): Version {
    return { ...this.wanted(), deleted: this.deleted };
  }

  /** All of what the user wants of an ROI that is there. */
  wanted(): RoiFields {
    const { geometry, shape, label, name, locked } = this;
    return { geometry, shape, label, name, locked };
  }

  /** What has to be sent next, or null where the server has what the user wants. */
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

  want(patch: RoiPatch): void {
    for (const field of FIELDS) {
      if (patch[field] === undefined) continue;
      Object.assign(this, { [field]: patch[field] });
      if (!this.server || this.differsFromServer(field)) this.dirty.add(field);
      else if (!this.inFlight) this.dirty.delete(field);
      else this.dirty.add(field);
    }
    if (this.problem?.kind !== "conflict") this.problem = null;
  }

  private differsFromServer(field: Field): boolean {
    if (!this.server) return true;
    if (field === "geometry") return !sameGeometry(this.geometry, this.server.geometry);
    return this[field] !== this.server[field];
  }

  patch(): RoiPatch {
    const patch: RoiPatch = {};
    for (const field of this.dirty) Object.assign(patch, { [field]: this[field] });
    return patch.geometry ? { ...patch, shape: this.shape } : patch;
  }

  /**
   * Take over the server's answer. A field the user changed while the answer was under way stays
   * as the user has it. Returns true where something visible changed.
   */
  adopt(roi: Roi, sent: RoiPatch | null): boolean {
    if (this.server && roi.version > this.server.version + 1) this.foreign += 1;
    this.server = roi;
    let changed = false;
    for (const field of FIELDS) {
      const wasChangedSince = this.dirty.has(field) && (!sent || this[field] !== sent[field]);
      if (wasChangedSince) continue;
      this.dirty.delete(field);
      if (!this.differsFromServer(field)) continue;
      Object.assign(this, { [field]: roi[field] });
      changed = true;
    }
    return changed;
  }

  /** Drop the unsaved changes in favour of the server's state. */
  takeServer(roi: Roi): void {
    this.foreign += 1;
    this.attempt = null;
    this.dirty.clear();
    this.problem = null;
    this.adopt(roi, null);
    this.deleted = roi.deleted_at !== null;
  }
}
