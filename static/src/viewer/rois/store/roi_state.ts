/** An ROI: the user's state, and the state that the server last confirmed. */

import type { RoiFields, RoiPatch } from "./api";
import { SavedState } from "../../lib/saving/saved_state";
import type { Attempt, Step, VersionOf } from "../../lib/saving/saved_state";
import { sameGeometry } from "../../map/pixel_plane";
import type { FrameRef, KeyFrame, Properties, Roi, RoiGeometry, RoiShape } from "../../lib/types";
import type { ShapedOutline } from "../shapes/interpolation";
import { shapeOf } from "../shapes/outlines";
import { outlineOn } from "../shapes/track";
import type { Tracked } from "../shapes/track";

type Field = keyof RoiFields;
const FIELDS: Field[] = ["geometry", "shape", "track", "label", "name", "description", "properties", "locked"];

/** Add the shape to a patch with a new geometry. */
export function withShape(patch: RoiPatch): RoiPatch {
  return patch.geometry && !patch.shape ? { ...patch, shape: shapeOf(patch.geometry) } : patch;
}

/** True if two tracks are equal; a missing track counts as empty. */
export function sameTrack(a: KeyFrame[] = [], b: KeyFrame[] = []): boolean {
  return a === b || (a.length === b.length && JSON.stringify(a) === JSON.stringify(b));
}

/** True if both have the same values by the same keys, in any order. */
export function sameProperties(a: Properties = {}, b: Properties = {}): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

/** Fields of an ROI that users see and merge. */
export type Version = VersionOf<RoiFields>;

/** An unsaved ROI in local storage. */
export interface StoredEdit extends Version {
  id: string;
  frame: FrameRef | null;
  dirty: Field[];
  server: Roi | null;
  attempt: Attempt<RoiFields> | null;
  /** Reason why the server refuses it. */
  refused: string | null;
}

export function versionOf(roi: Roi): Version {
  const { geometry, shape, track, label, name, description, properties, locked } = roi;
  return { geometry, shape, track, label, name, description, properties, locked, deleted: roi.deleted_at !== null };
}

export class RoiState extends SavedState<RoiFields, Roi> {
  /** Outline on the ROI's own frame; `geometry` and `shape` are those on the current frame. */
  private ownOutline: ShapedOutline;
  track: KeyFrame[];
  /** Current video frame; null is the ROI's own. */
  private viewedFrame: FrameRef | null = null;
  /** Outline of the ROI on a frame; null if it is absent there. */
  private outlineInView: ShapedOutline | null = null;
  label: string | null;
  name: string;
  description: string;
  properties: Properties;
  locked: boolean;

  constructor(
    id: string,
    readonly frame: FrameRef | null,
    fields: RoiPatch & { geometry: RoiGeometry },
  ) {
    super(id, FIELDS);
    this.ownOutline = { geometry: fields.geometry, shape: fields.shape ?? shapeOf(fields.geometry) };
    this.track = fields.track ?? [];
    this.label = fields.label ?? null;
    this.name = fields.name ?? "";
    this.description = fields.description ?? "";
    this.properties = fields.properties ?? {};
    this.locked = fields.locked ?? false;
  }

  /** The outline on the frame on screen. */
  get geometry(): RoiGeometry {
    return (this.outlineInView ?? this.ownOutline).geometry;
  }

  set geometry(geometry: RoiGeometry) {
    this.ownOutline = { ...this.ownOutline, geometry };
  }

  get shape(): RoiShape {
    return (this.outlineInView ?? this.ownOutline).shape;
  }

  set shape(shape: RoiShape) {
    this.ownOutline = { ...this.ownOutline, shape };
  }

  /** The ROI with its own outline and track. */
  get trackedOutline(): Tracked {
    return { frame: this.frame, ...this.ownOutline, track: this.track };
  }

  /** Set the frame on screen; true if its outline differs from the previous one. */
  view(frame: FrameRef | null): boolean {
    const [wasThere, before] = [this.isInView, this.geometry];
    this.viewedFrame = frame;
    this.updateOutlineInView();
    return wasThere !== this.isInView || before !== this.geometry;
  }

  /** False if it is not on the frame on screen. */
  get isInView(): boolean {
    if (!this.frame || !this.viewedFrame) return true;
    return this.track.length ? this.outlineInView !== null : this.frame.pts === this.viewedFrame.pts;
  }

  /** The frame on screen if a change of the outline creates a key frame there; else null. */
  get keyFrameAt(): FrameRef | null {
    const { frame, viewedFrame } = this;
    return frame && viewedFrame && this.track.length && viewedFrame.index !== frame.index ? viewedFrame : null;
  }

  private updateOutlineInView(): void {
    const { viewedFrame, frame, track } = this;
    this.outlineInView = viewedFrame && frame && track.length ? outlineOn(this.trackedOutline, viewedFrame.index) : null;
  }

  static fromServer(roi: Roi): RoiState {
    const state = new RoiState(roi.id, roi.frame, roi);
    state.server = roi;
    state.deleted = roi.deleted_at !== null;
    return state;
  }

  /** Restore from local storage. */
  static fromStored(stored: StoredEdit): RoiState {
    const state = new RoiState(stored.id, stored.frame, stored);
    const { deleted, attempt, refused } = stored;
    // drafts of an older page lack these fields
    const server = stored.server && Object.assign({ description: "", properties: {} }, stored.server);
    Object.assign(state, { deleted, server, attempt });
    for (const field of stored.dirty) state.dirty.add(field);
    if (refused !== null) state.problem = { kind: "refused", message: refused };
    return state;
  }

  toStored(): StoredEdit {
    const { id, frame, server, attempt, problem } = this;
    const refused = problem?.kind === "refused" ? problem.message : null;
    return { id, frame, ...this.version, dirty: [...this.dirty], server, attempt, refused };
  }

  /** All fields as edited by the user, saved or not. */
  currentFields(): RoiFields {
    const { ownOutline, track, label, name, description, properties, locked } = this;
    return { ...ownOutline, track, label, name, description, properties, locked };
  }

  /** A region locked on the server is unlocked before it is deleted. */
  override get nextStep(): Step | null {
    const step = super.nextStep;
    const isLocked = !this.attempt && this.server?.locked && !this.locked;
    return step === "delete" && isLocked ? "update" : step;
  }

  protected take(field: Field, value: unknown): void {
    Object.assign(this, { [field]: value });
    this.updateOutlineInView();
  }

  protected override sameField(field: Field, a: RoiFields, b: RoiFields): boolean {
    if (field === "geometry") return sameGeometry(a.geometry, b.geometry);
    if (field === "track") return sameTrack(a.track, b.track);
    if (field === "properties") return sameProperties(a.properties, b.properties);
    return a[field] === b[field];
  }

  override patch(): RoiPatch {
    const patch = super.patch();
    return patch.geometry ? { ...patch, shape: this.currentFields().shape } : patch;
  }
}
