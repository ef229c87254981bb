/** One ROI as this page knows it: what the user wants, and what the server last confirmed. */

import type { RoiFields, RoiPatch } from "./api";
import { sameGeometry } from "../../map/pixel_plane";
import type { FrameRef, KeyFrame, Properties, Roi, RoiGeometry, RoiShape } from "../../lib/types";
import type { ShapedOutline } from "../shapes/between";
import { shapeOf } from "../shapes/outlines";
import { outlineOn } from "../shapes/track";
import type { Tracked } from "../shapes/track";

export type Field = keyof RoiPatch;
const FIELDS: Field[] = ["geometry", "shape", "track", "label", "name", "description", "properties", "locked"];

/** A new geometry is what its type says, unless it is said to be an ellipse. */
export function whole(patch: RoiPatch): RoiPatch {
  return patch.geometry && !patch.shape ? { ...patch, shape: shapeOf(patch.geometry) } : patch;
}

/** Missing key frames count as none: edits kept by an older page have none. */
export function sameTrack(a: KeyFrame[] = [], b: KeyFrame[] = []): boolean {
  return a === b || (a.length === b.length && JSON.stringify(a) === JSON.stringify(b));
}

/** The same texts by the same keys, in whatever order. */
export function sameProperties(a: Properties = {}, b: Properties = {}): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
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

/** What of an ROI people see, and choose from where two versions differ. */
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
  const { geometry, shape, track, label, name, description, properties, locked } = roi;
  return { geometry, shape, track, label, name, description, properties, locked, deleted: roi.deleted_at !== null };
}

export class RoiState {
  /** On its own frame; `geometry` and `shape` are what is on screen. */
  private own: ShapedOutline;
  track: KeyFrame[];
  /** The frame of the video on screen; null: its own. */
  private viewed: FrameRef | null = null;
  /** Its outline there; null where it is not there. */
  private seen: ShapedOutline | null = null;
  label: string | null;
  name: string;
  description: string;
  properties: Properties;
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
    this.own = { geometry: wanted.geometry, shape: wanted.shape ?? shapeOf(wanted.geometry) };
    this.track = wanted.track ?? [];
    this.label = wanted.label ?? null;
    this.name = wanted.name ?? "";
    this.description = wanted.description ?? "";
    this.properties = wanted.properties ?? {};
    this.locked = wanted.locked ?? false;
    this.deleted = false;
  }

  /** The outline on the frame on screen. */
  get geometry(): RoiGeometry {
    return (this.seen ?? this.own).geometry;
  }

  set geometry(geometry: RoiGeometry) {
    this.own = { ...this.own, geometry };
  }

  get shape(): RoiShape {
    return (this.seen ?? this.own).shape;
  }

  set shape(shape: RoiShape) {
    this.own = { ...this.own, shape };
  }

  /** The ROI with its own outline, whatever is on screen. */
  get tracked(): Tracked {
    return { frame: this.frame, ...this.own, track: this.track };
  }

  /** A frame of the video is on screen; true where the outline there differs from the one before. */
  view(frame: FrameRef | null): boolean {
    const [wasThere, before] = [this.isInView, this.geometry];
    this.viewed = frame;
    this.seeAgain();
    return wasThere !== this.isInView || before !== this.geometry;
  }

  /** False where it is not on the frame on screen. */
  get isInView(): boolean {
    if (!this.frame || !this.viewed) return true;
    return this.track.length ? this.seen !== null : this.frame.pts === this.viewed.pts;
  }

  /** The frame on screen, where a change of the outline makes a key frame there; else null. */
  get keyedAt(): FrameRef | null {
    const { frame, viewed } = this;
    return frame && viewed && this.track.length && viewed.index !== frame.index ? viewed : null;
  }

  private seeAgain(): void {
    const { viewed, frame, track } = this;
    this.seen = viewed && frame && track.length ? outlineOn(this.tracked, viewed.index) : null;
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
    const { deleted, attempt, refused } = stored;
    // what an older page kept says nothing of these
    const server = stored.server && Object.assign({ description: "", properties: {} }, stored.server);
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
    const { own, track, label, name, description, properties, locked } = this;
    return { ...own, track, label, name, description, properties, locked };
  }

  /** What has to be sent next, or null where the server has what the user wants. */
  get nextStep(): Step | null {
    if (this.attempt) return this.attempt.step;
    if (!this.server) return this.deleted ? null : "create";
    const isDeletedThere = this.server.deleted_at !== null;
    if (this.deleted && !isDeletedThere && this.server.locked && !this.locked) return "update"; // a locked one stays
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
      this.take(field, patch[field]);
      if (!this.server || this.differsFromServer(field)) this.dirty.add(field);
      else if (!this.inFlight && !this.attempt) this.dirty.delete(field);
      else this.dirty.add(field); // what was sent may be there already
    }
    if (this.problem?.kind !== "conflict") this.problem = null;
  }

  private take(field: Field, value: unknown): void {
    Object.assign(this, { [field]: value });
    this.seeAgain();
  }

  private differsFromServer(field: Field): boolean {
    if (!this.server) return true;
    const mine = this.wanted();
    if (field === "geometry") return !sameGeometry(mine.geometry, this.server.geometry);
    if (field === "track") return !sameTrack(mine.track, this.server.track);
    if (field === "properties") return !sameProperties(mine.properties, this.server.properties);
    return mine[field] !== this.server[field];
  }

  patch(): RoiPatch {
    const patch: RoiPatch = {};
    const mine = this.wanted();
    for (const field of this.dirty) Object.assign(patch, { [field]: mine[field] });
    return patch.geometry ? { ...patch, shape: mine.shape } : patch;
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
      const wasChangedSince = this.dirty.has(field) && (!sent || this.wanted()[field] !== sent[field]);
      if (wasChangedSince) continue;
      this.dirty.delete(field);
      if (!this.differsFromServer(field)) continue;
      this.take(field, roi[field]);
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
