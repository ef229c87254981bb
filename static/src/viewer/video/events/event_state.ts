/** One event of a video as this page knows it. */

import { SavedState } from "../../lib/saving/saved_state";
import type { Attempt, VersionOf } from "../../lib/saving/saved_state";
import { Merge } from "../../lib/saving/merge";
import { timeText } from "../../lib/units";
import type { FrameRef } from "../../lib/types";
import type { VideoEvent, VideoEventFields } from "./api";

export type EventVersion = VersionOf<VideoEventFields>;
type Field = keyof VideoEventFields;

/** An unsaved event in local storage. */
export interface StoredEvent extends EventVersion {
  id: string;
  dirty: Field[];
  server: VideoEvent | null;
  attempt: Attempt<VideoEventFields> | null;
  /** Why the server does not take it. */
  refused: string | null;
}

function sameField(field: keyof EventVersion, a: EventVersion, b: EventVersion): boolean {
  return field === "first" || field === "last" ? a[field].index === b[field].index : a[field] === b[field];
}

export const EVENT_MERGE = new Merge<EventVersion, keyof EventVersion>(["deleted", "name", "note", "first", "last"], sameField);

export function eventVersionOf({ name, note, first, last, deleted_at }: VideoEvent): EventVersion {
  return { name, note, first, last, deleted: deleted_at !== null };
}

export class VideoEventState extends SavedState<VideoEventFields, VideoEvent> {
  private now: VideoEventFields;

  constructor(id: string, { name, note, first, last }: VideoEventFields) {
    super(id, ["name", "note", "first", "last"]);
    this.now = { name, note, first, last };
  }

  static fromServer(event: VideoEvent): VideoEventState {
    const state = new VideoEventState(event.id, event);
    state.server = event;
    state.deleted = event.deleted_at !== null;
    return state;
  }

  static fromStored(stored: StoredEvent): VideoEventState {
    const state = new VideoEventState(stored.id, stored);
    const { deleted, attempt, server, refused } = stored;
    Object.assign(state, { deleted, attempt, server });
    for (const field of stored.dirty) state.dirty.add(field);
    if (refused !== null) state.problem = { kind: "refused", message: refused };
    return state;
  }

  toStored(): StoredEvent {
    const { id, server, attempt, problem } = this;
    const refused = problem?.kind === "refused" ? problem.message : null;
    return { id, ...this.version, dirty: [...this.dirty], server, attempt, refused };
  }

  currentFields(): VideoEventFields {
    return { ...this.now };
  }

  get name(): string {
    return this.now.name;
  }

  get note(): string {
    return this.now.note;
  }

  get first(): FrameRef {
    return this.now.first;
  }

  get last(): FrameRef {
    return this.now.last;
  }

  get isMoment(): boolean {
    return this.first.index === this.last.index;
  }

  protected take(field: Field, value: unknown): void {
    this.now = { ...this.now, [field]: value };
  }

  protected override sameField(field: Field, a: VideoEventFields, b: VideoEventFields): boolean {
    return sameField(field, { ...a, deleted: false }, { ...b, deleted: false });
  }
}

/** Order events by first frame, then by last frame. */
export function inOrder(events: VideoEventState[]): VideoEventState[] {
  return [...events].sort((a, b) => a.first.index - b.first.index || a.last.index - b.last.index || a.id.localeCompare(b.id));
}

/** Events whose name contains the text, in any case. */
export function withName(events: VideoEventState[], text: string): VideoEventState[] {
  const query = text.trim().toLocaleLowerCase();
  return events.filter(({ name }) => name.toLocaleLowerCase().includes(query));
}

/** Time from the start of the first frame to the start of the last: "2.40 s", "1:05 min"; empty for a moment. */
export function durationText({ first, last }: Pick<VideoEventFields, "first" | "last">): string {
  const seconds = last.time_s - first.time_s;
  if (first.index === last.index) return "";
  if (seconds < 60) return `${seconds.toFixed(2)} s`;
  const rounded = Math.round(seconds);
  return `${Math.floor(rounded / 60)}:${String(rounded % 60).padStart(2, "0")} min`;
}

/** "Frame 12, 00:00.480", "Frames 12 to 30, 00:00.480 to 00:01.200". */
export function placeText({ first, last }: Pick<VideoEventFields, "first" | "last">): string {
  if (first.index === last.index) return `Frame ${first.index + 1}, ${timeText(first.time_s)}`;
  return `Frames ${first.index + 1} to ${last.index + 1}, ${timeText(first.time_s)} to ${timeText(last.time_s)}`;
}
