/** The events of a video: loaded, saved and changed as ROIs are. */

import { Autosave } from "../../lib/saving/autosave";
import type { SaveKind } from "../../lib/saving/autosave";
import { changeText } from "../../lib/saving/pending_changes";
import type { PendingChange } from "../../lib/saving/pending_changes";
import type { ConflictKind } from "../../lib/saving/conflicts";
import { Edits } from "../../lib/saving/edits";
import { SavedStore } from "../../lib/saving/saved_store";
import type { History } from "../../lib/history";
import { randomUuid } from "../../lib/uuid";
import { timeText } from "../../lib/units";
import {
  videoEventCreate,
  videoEventDelete,
  videoEventGet,
  videoEventRestore,
  videoEventRevisions,
  videoEvents,
  videoEventUpdate,
} from "./api";
import type { VideoEvent, VideoEventFields } from "./api";
import { EVENT_MERGE, VideoEventState, eventVersionOf } from "./event_state";
import type { EventVersion, StoredEvent } from "./event_state";

const saveKindOf = (canvas: string): SaveKind<VideoEventFields, VideoEvent, VideoEventState> => ({
  noun: "event",
  merge: EVENT_MERGE,
  versionOf: eventVersionOf,
  bodyOf: (state, step) => (step === "create" ? state.currentFields() : step === "update" ? state.patch() : {}),
  create: (state, body, key) => videoEventCreate(state.id, canvas, { ...state.currentFields(), ...body }, key),
  update: videoEventUpdate,
  restore: (id, version, _body, key) => videoEventRestore(id, version, key),
  remove: videoEventDelete,
  get: videoEventGet,
  refusals: [],
  batch: null,
});

export class VideoEventStore extends SavedStore<VideoEventFields, VideoEvent, VideoEventState> {
  constructor(
    private readonly canvas: string,
    leaving?: AbortSignal,
  ) {
    super(new Autosave(saveKindOf(canvas), leaving));
  }

  protected stateOf(event: VideoEvent): VideoEventState {
    return VideoEventState.fromServer(event);
  }

  async load(): Promise<void> {
    const before = new Map(this.existingObjects().map((state) => [state, state.server?.version]));
    try {
      const events = await videoEvents(this.canvas);
      this.merge(events);
      this.dropMissing(before, new Set(events.map(({ id }) => id)));
      this.emit("loaded", { total: this.existingObjects().length, windowed: false });
    } catch (error) {
      this.emit("error", error instanceof Error ? error.message : "The events could not be loaded.");
    }
  }

  async fetchOne(id: string): Promise<void> {
    const event = await videoEventGet(id).catch(() => null);
    if (event?.canvas === this.canvas) this.merge([event]);
  }

  holdStored(stored: StoredEvent): void {
    this.addStored(VideoEventState.fromStored(stored));
  }

  /** Drop events that others deleted since the last load, not those that were saved while it ran. */
  private dropMissing(before: Map<VideoEventState, number | undefined>, present: Set<string>): void {
    const removed = this.existingObjects().filter(
      (state) => state.isSettled && state.server && !present.has(state.id) && before.get(state) === state.server.version,
    );
    for (const state of removed) this.states.delete(state.id);
    if (removed.length) this.emit("removed", removed);
  }
}

export class VideoEventEdits extends Edits<VideoEventFields, VideoEvent, VideoEventState> {
  constructor(store: VideoEventStore, history: History) {
    super(store, history, { noun: "event", merge: EVENT_MERGE, versionOf: eventVersionOf });
  }

  create(fields: VideoEventFields): VideoEventState {
    const state = new VideoEventState(randomUuid(), fields);
    this.addNew(state, "Add event");
    return state;
  }
}

const FIELD_NAMES: Record<keyof EventVersion, string> = {
  ...{ deleted: "Kept or deleted", name: "Name", note: "Note", first: "First frame", last: "Last frame" },
};

function fieldText(field: keyof EventVersion, version: EventVersion): string {
  if (field === "deleted") return version.deleted ? "Deleted" : "Kept";
  if (field === "name") return version.name;
  if (field === "note") return version.note || "None";
  const { index, time_s } = version[field];
  return `Frame ${index + 1}, ${timeText(time_s)}`;
}

/** Conflicts of events in the dialog. */
export const eventConflicts = (edits: VideoEventEdits): ConflictKind<VideoEventFields, VideoEvent, VideoEventState, keyof EventVersion> => ({
  ...{ noun: "event", merge: EVENT_MERGE, versionOf: eventVersionOf, fieldNames: FIELD_NAMES, text: fieldText, textBefore: fieldText },
  revisions: videoEventRevisions,
  save: (state, theirs, result) => edits.merge(state, theirs, result),
});

const CHANGED_NAMES: Record<keyof EventVersion, string> = {
  ...{ deleted: "deletion", name: "name", note: "note", first: "first frame", last: "last frame" },
};

/** Unsaved changes of events in the dialog of pending changes. */
export function pendingEvents({ sync }: VideoEventStore, edits: VideoEventEdits): PendingChange[] {
  return sync.waiting.map((state) => {
    const { server, deleted, version, problem } = state;
    const changed = server ? EVENT_MERGE.differingFields(version, eventVersionOf(server)) : [];
    const text = changeText("event", CHANGED_NAMES, { server, deleted, changed });
    return { title: state.name, text, problem, discard: () => edits.discard(state) };
  });
}
