import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { History } from "@/viewer/lib/history";
import { SaveQueues } from "@/viewer/lib/saving/autosave";
import type { Conflict } from "@/viewer/lib/saving/autosave";
import { Drafts } from "@/viewer/lib/saving/drafts";
import type { VideoEvent, VideoEventFields } from "@/viewer/video/events/api";
import { EVENT_MERGE, durationText, eventVersionOf, inOrder, placeText, withName } from "@/viewer/video/events/event_state";
import type { StoredEvent, VideoEventState } from "@/viewer/video/events/event_state";
import { VideoEventEdits, VideoEventStore, pendingEvents } from "@/viewer/video/events/event_store";
import { pass, stopClock } from "../../clock";
import { memoryShelf } from "../../rois/memory_storage";
import { FakeEventServer, frame, videoEvent } from "./fake_server";

type EventConflict = Conflict<VideoEventFields, VideoEvent, VideoEventState>;

let server: FakeEventServer;
let history: History;
let store: VideoEventStore;
let edits: VideoEventEdits;

beforeEach(async () => {
  stopClock();
  vi.stubGlobal("addEventListener", () => undefined);
  server = new FakeEventServer(videoEvent());
  history = new History();
  store = new VideoEventStore("c1");
  edits = new VideoEventEdits(store, history);
  await store.load();
});

afterEach(() => vi.useRealTimers());

const first = (): VideoEventState => store.get("e1") as VideoEventState;
const saved = (): Promise<void> => pass(600);
const span = { name: "Withdrawal", note: "", first: frame(20), last: frame(45) };

describe("an event", () => {
  it("is shown at once, and saved with its frames a little later", async () => {
    const state = edits.create(span);
    expect(store.existingObjects()).toContain(state);
    await saved();
    expect(server.events.get(state.id)).toMatchObject({ name: "Withdrawal", first: { index: 20 }, last: { index: 45 }, version: 1 });
    expect(server.writes).toEqual(["POST"]);
  });

  it("that is saved while the list is read stays", async () => {
    const state = edits.create(span);
    const { fetch } = globalThis;
    let send = (): void => undefined;
    const sent = new Promise<void>((resolve) => (send = resolve));
    vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
      const response = await fetch(url, init);
      if (!init.method || init.method === "GET") await sent;
      return response;
    });
    const loading = store.load(); // answered without it
    await saved();
    send();
    await loading;
    expect([state.isSettled, store.existingObjects().includes(state)]).toEqual([true, true]);
  });

  it("that is renamed while it is new is saved once, by its new name", async () => {
    const state = edits.create(span);
    edits.change(state, { name: "Washing" }, "Rename event");
    await saved();
    expect([server.writes, server.events.get(state.id)?.name]).toEqual([["POST"], "Washing"]);
  });

  it("is changed by its version; undo and redo are versions as well", async () => {
    edits.change(first(), { last: frame(30) }, "Change frames");
    await saved();
    expect(server.events.get("e1")).toMatchObject({ first: { index: 10 }, last: { index: 30 }, version: 2 });
    history.undo();
    await saved();
    expect(server.events.get("e1")).toMatchObject({ last: { index: 10 }, version: 3 });
    history.redo();
    await saved();
    expect(server.writes).toEqual(["PATCH 1", "PATCH 2", "PATCH 3"]);
  });

  it("is deleted, and restored by undo", async () => {
    edits.remove(first());
    expect(store.existingObjects()).toEqual([]);
    await saved();
    history.undo();
    expect(store.existingObjects()).toEqual([first()]);
    await saved();
    expect(server.writes).toEqual(["DELETE 1", "POST 2"]);
    expect(server.events.get("e1")).toMatchObject({ version: 3, deleted_at: null });
  });
});

describe("what somebody else changed first", () => {
  it("is asked about, and the choice is saved on top of theirs", async () => {
    const asked: EventConflict[] = [];
    store.sync.on("conflict", (conflict) => asked.push(conflict));
    edits.change(first(), { name: "Mine", note: "of mine" }, "Rename event");
    server.change("e1", { name: "Theirs" });
    await saved();
    const [conflict] = asked;
    if (!conflict) throw new Error("no conflict");
    const { state, theirs, base } = conflict;
    const other = eventVersionOf(theirs);
    expect([base?.name, state.name, theirs.name, store.sync.report.status]).toEqual(["Caecum", "Mine", "Theirs", "conflict"]);
    expect(EVENT_MERGE.automaticChoices(base, state.version, other)).toEqual({ note: "mine" });
    const result = EVENT_MERGE.mergedVersion(state.version, other, { name: "theirs", note: "mine" });
    if (result) edits.merge(state, theirs, result);
    await pass(0);
    expect(server.events.get("e1")).toMatchObject({ name: "Theirs", note: "of mine", version: 3 });
    expect(store.sync.report.status).toBe("saved");
  });

  it("is taken over where nothing is unsaved, a deletion included", async () => {
    server.change("e1", { name: "Theirs" });
    await store.load();
    expect(first().name).toBe("Theirs");
    server.change("e1", { deleted_at: "2026-01-03T00:00:00Z" });
    await store.load();
    expect(store.existingObjects()).toEqual([]);
  });
});

describe("without an answer of the server", () => {
  it("a change waits, is reported, and is sent when the server answers", async () => {
    const saving = new SaveQueues([store.sync]);
    server.isUp = false;
    edits.change(first(), { name: "Later" }, "Rename event");
    await saved();
    expect(saving.report).toEqual({ status: "retry", message: "The server does not answer.", pending: 1 });
    expect(pendingEvents(store, edits)).toMatchObject([{ title: "Later", text: "Changed: name" }]);
    server.isUp = true;
    saving.retryNow();
    await pass(0);
    expect([saving.report.status, server.events.get("e1")?.name]).toEqual(["saved", "Later"]);
  });

  it("a new event outlives the page", async () => {
    const shelf = memoryShelf<StoredEvent>();
    new Drafts(store, shelf);
    server.isUp = false;
    const { id } = edits.create(span);
    await saved();
    vi.clearAllTimers(); // the page is gone
    server.isUp = true;
    const next = new VideoEventStore("c1");
    expect(await new Drafts(next, shelf).replay()).toBe(1);
    await next.load();
    await pass(0);
    expect([next.existingObjects().length, server.events.get(id)?.name]).toEqual([2, "Withdrawal"]);
    expect(await shelf.getAll()).toEqual([]);
  });
});

it("two queues report the more urgent of their states, and all that waits", async () => {
  const other = new VideoEventStore("c1");
  const saving = new SaveQueues([other.sync, store.sync]);
  edits.create(span);
  expect(saving.report).toEqual({ status: "saving", message: "", pending: 1 });
  expect(saving.isSafeToLeave).toBe(false);
  const finished = saving.finish(2000);
  await pass(0);
  await finished;
  expect([saving.report.status, saving.isSafeToLeave]).toEqual(["saved", true]);
});

describe("texts", () => {
  it("name the frames from 1, and the time", () => {
    expect(placeText({ first: frame(10), last: frame(10) })).toBe("Frame 11, 00:00.400");
    expect(placeText(span)).toBe("Frames 21 to 46, 00:00.800 to 00:01.800");
  });

  it("give a duration to a span only", () => {
    expect(durationText({ first: frame(10), last: frame(10) })).toBe("");
    expect(durationText(span)).toBe("1.00 s");
    expect(durationText({ first: frame(0), last: frame(25 * 65) })).toBe("1:05 min");
    expect(durationText({ first: frame(0), last: frame(25 * 60 - 1) })).toBe("59.96 s");
  });
});

it("orders by frame and filters by a part of the name in any case", () => {
  const [late, early] = [edits.create(span), edits.create({ ...span, name: "Caecum again", first: frame(2), last: frame(2) })];
  expect(inOrder(store.existingObjects())).toEqual([early, first(), late]);
  expect(withName(inOrder(store.existingObjects()), " CAEC")).toEqual([early, first()]);
  expect(withName(store.existingObjects(), "")).toHaveLength(3);
});
