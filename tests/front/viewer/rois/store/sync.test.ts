import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { RoiState } from "@/viewer/rois/store/roi_state";
import { pass, stopClock } from "../../clock";
import { FakeServer, roi, square } from "../fake_server";
import { drawn, syncing } from "../sync_fixture";

const DEBOUNCE_MS = 600;
let listeners: Record<string, (event: Event) => void> = {};

beforeEach(() => {
  stopClock();
  listeners = {};
  vi.stubGlobal("addEventListener", (name: string, listener: (event: Event) => void) => (listeners[name] = listener));
});

afterEach(() => vi.useRealTimers());

describe("saving", () => {
  it("creates what was drawn under the id it has here", async () => {
    const server = new FakeServer();
    const { sync, statuses } = syncing();
    const state = drawn();
    sync.schedule(state);
    await pass(DEBOUNCE_MS);
    expect(server.rois.get("r1")).toMatchObject({ canvas: "c1", label: "l1", geometry: square() });
    expect(state.isSettled).toBe(true);
    expect([sync.pendingCount, statuses]).toEqual([0, ["saving", "saved"]]);
  });

  it("waits until the user pauses, and sends many changes as one", async () => {
    const server = new FakeServer(roi());
    const { sync } = syncing();
    const state = RoiState.fromServer(roi());
    for (const name of ["a", "ab", "abc"]) {
      state.setFields({ name });
      sync.schedule(state);
      await pass(DEBOUNCE_MS - 1);
    }
    expect(server.writes).toBe("");
    await pass(1);
    expect(server.writes).toBe("PATCH 1");
    expect(server.rois.get("r1")?.name).toBe("abc");
  });

  it("sends what was changed meanwhile after the answer, by its version", async () => {
    const server = new FakeServer(roi());
    const { sync } = syncing();
    const state = RoiState.fromServer(roi());
    state.setFields({ name: "first" });
    sync.schedule(state, 0);
    sync.on("adopted", () => undefined);
    vi.advanceTimersByTime(0); // under way, not answered yet
    state.setFields({ name: "second" });
    await pass(0);
    expect(server.writes).toBe("PATCH 1, PATCH 2");
    expect(server.rois.get("r1")?.name).toBe("second");
  });

  it("deletes, and restores by the version that the deletion made", async () => {
    const server = new FakeServer(roi());
    const { sync } = syncing();
    const state = RoiState.fromServer(roi());
    state.deleted = true;
    sync.schedule(state, 0);
    await pass(0);
    state.deleted = false;
    sync.schedule(state, 0);
    await pass(0);
    expect(server.writes).toBe("DELETE 1, POST 2");
    expect(server.rois.get("r1")?.deleted_at).toBeNull();
    expect(state.server?.version).toBe(3);
  });

  it("forgets one that was drawn and deleted before it was ever sent", async () => {
    const server = new FakeServer();
    const { sync } = syncing();
    const state = drawn();
    sync.schedule(state);
    state.deleted = true;
    sync.schedule(state);
    await pass(DEBOUNCE_MS);
    expect([server.writes, sync.pendingCount]).toEqual(["", 0]);
  });

  it("takes over what the server repaired, and tells the page", async () => {
    const server = new FakeServer(roi());
    const { sync } = syncing();
    const adopted: string[] = [];
    sync.on("adopted", ({ id }) => adopted.push(id));
    const state = RoiState.fromServer(roi());
    state.setFields({ geometry: square(-5) });
    server.instead.push(Response.json(roi({ version: 2, notes: ["clipped"] })));
    sync.schedule(state, 0);
    await pass(0);
    expect(state.geometry).toEqual(square(0));
    expect(adopted).toEqual(["r1"]);
  });
});

describe("a line that breaks", () => {
  it("is tried again after 1, 2, 4 s ... and nothing is lost", async () => {
    const server = new FakeServer();
    server.instead.push(new TypeError(), Response.json({}, { status: 503 }), new TypeError());
    const { sync, statuses } = syncing();
    const state = drawn();
    sync.schedule(state, 0);
    await pass(0);
    expect(state.problem?.kind).toBe("retry");
    for (const [waited, requests] of [[999, 1], [1, 2], [1999, 2], [1, 3], [3999, 3], [1, 4]] as const) {
      await pass(waited);
      expect(server.asked).toHaveLength(requests);
    }
    expect([state.isSettled, state.problem, sync.pendingCount]).toEqual([true, null, 0]);
    expect(statuses.at(-1)).toBe("saved");
  });

  it("waits as long as the server asks", async () => {
    const server = new FakeServer();
    server.instead.push(Response.json({}, { status: 429, headers: { "Retry-After": "20" } }));
    const { sync } = syncing();
    sync.schedule(drawn(), 0);
    await pass(19_999);
    expect(server.asked).toHaveLength(1);
    await pass(1);
    expect(server.rois.has("r1")).toBe(true);
  });

  it("is tried again at once when the browser is back online", async () => {
    const server = new FakeServer();
    server.instead.push(new TypeError());
    const { sync } = syncing();
    sync.schedule(drawn(), 0);
    await pass(0);
    listeners.online?.(new Event("online"));
    await pass(0);
    expect(server.rois.has("r1")).toBe(true);
  });

  it("may have lost the answer only: the same request is sent again, and what was changed since follows", async () => {
    const server = new FakeServer();
    server.lost = 1;
    const { sync } = syncing();
    const state = drawn();
    sync.schedule(state, 0);
    await pass(0);
    server.change("r1", { label: "theirs" });
    state.setFields({ name: "later" });
    sync.schedule(state, 0);
    await pass(1000);
    const [first, second] = server.asked;
    expect(second).toEqual(first);
    expect(server.writes).toBe("POST, POST, PATCH 2");
    expect(server.rois.get("r1")).toMatchObject({ name: "later", label: "theirs", version: 3 });
  });

  it("loses an answer to a change or a deletion no more than to a drawing", async () => {
    const server = new FakeServer(roi());
    const { sync, statuses } = syncing();
    const state = RoiState.fromServer(roi());
    for (const change of [() => state.setFields({ name: "x" }), () => (state.deleted = true), () => (state.deleted = false)]) {
      server.lost = 1;
      change();
      sync.schedule(state, 0);
      await pass(0);
      await pass(1000);
    }
    expect(server.rois.get("r1")).toMatchObject({ name: "x", version: 4, deleted_at: null });
    expect([sync.pendingCount, statuses.includes("conflict")]).toEqual([0, false]);
  });

  it("is waited for by all, and they follow in the order in which they were made", async () => {
    const server = new FakeServer();
    server.instead.push(new TypeError());
    const { sync } = syncing();
    for (const id of ["a", "b", "c"]) {
      sync.schedule(new RoiState(id, null, { geometry: square() }), 0);
      await pass(0);
    }
    expect(server.asked).toHaveLength(1);
    await pass(1000);
    expect(server.asked.map(({ body }) => body.id)).toEqual(["a", "a", "b", "c"]);
    expect(sync.pendingCount).toBe(0);
  });

  it("leaves nothing behind that was changed while the rest was sent", async () => {
    const server = new FakeServer();
    server.instead.push(new TypeError());
    const { sync } = syncing();
    const states = ["a", "b"].map((id) => new RoiState(id, null, { geometry: square() }));
    for (const state of states) sync.schedule(state, 0);
    await pass(0);
    sync.on("confirmed", (state) => {
      if (state.id !== "a" || state.name) return;
      state.setFields({ name: "later" });
      sync.schedule(state, 0);
    });
    await pass(1000);
    await pass(0);
    await pass(0);
    expect([server.rois.get("a")?.name, sync.pendingCount]).toEqual(["later", 0]);
  });

  it("is like being signed out: what waits goes when the person is back", async () => {
    const server = new FakeServer();
    server.instead.push(Response.json({}, { status: 401 }));
    const { sync, statuses } = syncing();
    const state = drawn();
    sync.schedule(state, 0);
    await pass(0);
    expect([state.problem?.message, statuses.at(-1)]).toEqual(["You are signed out. Sign in again in another tab.", "retry"]);
    listeners.focus?.(new Event("focus"));
    await pass(0);
    expect([server.rois.has("r1"), statuses.at(-1)]).toEqual([true, "saved"]);
  });

  it("may have lost the answer only: a second create finds the first", async () => {
    const server = new FakeServer(roi({ label: "l1" }));
    const { sync, statuses } = syncing();
    const state = drawn();
    sync.schedule(state, 0);
    await pass(0);
    await pass(1);
    expect([server.writes, state.isSettled, state.server?.version]).toEqual(["POST", true, 1]);
    expect(statuses).not.toContain("conflict");
  });
});

describe("a refusal", () => {
  it("stays on the page with its reason, and is sent again once it is mended", async () => {
    const server = new FakeServer();
    server.instead.push(Response.json({ detail: "The outline has no area." }, { status: 400 }));
    const { sync, statuses } = syncing();
    const state = drawn();
    sync.schedule(state, 0);
    await pass(60_000);
    expect(server.asked).toHaveLength(1);
    expect(state.problem).toEqual({ kind: "refused", message: "The outline has no area." });
    expect(statuses.at(-1)).toBe("refused");
    state.setFields({ geometry: square(7) });
    sync.schedule(state);
    await pass(DEBOUNCE_MS);
    expect(server.rois.get("r1")?.geometry).toEqual(square(7));
    expect(statuses.at(-1)).toBe("saved");
  });

  it.each([
    [403, "Not allowed: The lab only reads."],
    [404, "This region, or its image, is no longer there."],
  ])("with status %d says what to do", async (status, message) => {
    const server = new FakeServer();
    server.instead.push(Response.json({ detail: "The lab only reads." }, { status }));
    const { sync } = syncing();
    const state = drawn();
    sync.schedule(state, 0);
    await pass(0);
    expect(state.problem?.message).toBe(message);
  });

  it("to delete what is gone already is no trouble", async () => {
    const server = new FakeServer();
    const { sync } = syncing();
    const state = RoiState.fromServer(roi());
    state.deleted = true;
    sync.schedule(state, 0);
    await pass(0);
    await pass(1);
    expect([server.writes, state.isSettled, sync.pendingCount]).toEqual(["DELETE 1", true, 0]);
  });
});

describe("someone else was first", () => {
  it("is put to the user, and nothing is sent before the answer", async () => {
    const server = new FakeServer(roi());
    const { sync, statuses } = syncing();
    const met: string[] = [];
    sync.on("conflict", ({ theirs }) => met.push(theirs.name));
    const state = RoiState.fromServer(roi());
    server.change("r1", { name: "theirs" });
    state.setFields({ name: "mine" });
    sync.schedule(state, 0);
    await pass(0);
    sync.schedule(state, 0);
    await pass(60_000);
    expect([met, server.writes]).toEqual([["theirs"], "PATCH 1"]);
    expect(server.rois.get("r1")?.name).toBe("theirs");
    expect([statuses.at(-1), state.problem?.kind, state.name]).toEqual(["conflict", "conflict", "mine"]);
  });

  it("is no conflict where both deleted", async () => {
    const server = new FakeServer(roi());
    const { sync, statuses } = syncing();
    const state = RoiState.fromServer(roi());
    server.change("r1", { deleted_at: "2026-01-03T00:00:00Z" });
    state.deleted = true;
    sync.schedule(state, 0);
    await pass(0);
    await pass(1);
    expect([statuses.at(-1), state.isSettled]).toEqual(["saved", true]);
  });

  it("is asked about where the answer does not say what stands there", async () => {
    const server = new FakeServer(roi());
    const { sync } = syncing();
    let theirs = "";
    sync.on("conflict", (conflict) => (theirs = conflict.theirs.name));
    const state = RoiState.fromServer(roi());
    server.change("r1", { name: "theirs" });
    server.instead.push(Response.json({ code: "version" }, { status: 412 }));
    state.setFields({ name: "mine" });
    sync.schedule(state, 0);
    await pass(0);
    expect(theirs).toBe("theirs");
  });
});

it("the worst of many is what the page says", async () => {
  const server = new FakeServer(roi({ id: "a" }), roi({ id: "b" }));
  server.instead.push(Response.json({ detail: "no" }, { status: 400 }), new TypeError());
  const { sync, statuses } = syncing();
  for (const id of ["a", "b"]) {
    const state = RoiState.fromServer(roi({ id }));
    state.setFields({ name: "x" });
    sync.schedule(state, 0);
  }
  await pass(0);
  expect(statuses.at(-1)).toBe("refused");
  expect(sync.pendingCount).toBe(2);
});
