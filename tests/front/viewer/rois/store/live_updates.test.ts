import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { LiveUpdates, POLL_MS, HEARTBEAT_MS } from "@/viewer/rois/store/live_updates";
import { RoiStore } from "@/viewer/rois/store/roi_store";
import { canvas } from "../../canvases";
import { FakeServer, roi } from "../fake_server";

let server: FakeServer;
let store: RoiStore;
let live: LiveUpdates;
let chosen: string | null = null;

const now = (changed: object[], people: object[] = [], video_events = 0): Response =>
  new Response(JSON.stringify({ cursor: "2026-01-01T00:00:00Z", changed, has_more: false, people, video_events }), {
    headers: { ETag: '"e1"' },
  });
const same = (): Response => new Response(null, { status: 304 });
const done = (): Response => new Response(null, { status: 204 });
const page = (...rois: object[]): Response => new Response(JSON.stringify({ results: rois }));

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  vi.stubGlobal("addEventListener", () => undefined);
  server = new FakeServer(roi({ name: "old" }));
  store = new RoiStore(canvas());
  await store.load();
  live = new LiveUpdates("c1", store, () => ({ view: null, roi: chosen }));
  server.asked.length = 0;
});

afterEach(() => vi.useRealTimers());

it("takes over what others changed, once", async () => {
  const theirs = server.change("r1", { name: "theirs" });
  server.instead.push(done(), now([{ id: "r1", version: 2, is_deleted: false }]), page(theirs));
  expect(await live.update()).toBe(POLL_MS);
  expect(store.get("r1")?.name).toBe("theirs");
  server.instead.push(now([{ id: "r1", version: 2, is_deleted: false }]));
  await live.update();
  expect(server.asked.map(({ path }) => path.split("/").at(-2))).toEqual(["live", "live", "rois", "live"]);
});

it("takes what came with the answer, and asks for nothing more", async () => {
  const theirs = server.change("r1", { name: "theirs" });
  const mine = roi({ id: "r2", version: 1 });
  const told = [theirs, mine].map((one) => ({ id: one.id, version: one.version, is_deleted: false, roi: one }));
  server.instead.push(done(), now(told));
  await live.update();
  server.instead.push(now(told));
  await live.update();
  expect([store.get("r1")?.name, store.existingObjects().length, store.total]).toEqual(["theirs", 2, 2]);
  expect(server.asked.map(({ path }) => path.split("/").at(-2))).toEqual(["live", "live", "live"]);
});

it("lets go of what others deleted, and tells the map", async () => {
  const gone: string[] = [];
  store.on("removed", (states) => gone.push(...states.map(({ id }) => id)));
  const theirs = server.change("r1", { deleted_at: "2026-01-01T00:00:00Z" });
  server.instead.push(done(), now([{ id: "r1", version: 2, is_deleted: true }]), page(theirs));
  await live.update();
  expect([gone, store.existingObjects().length, store.total]).toEqual([["r1"], 0, 0]);
});

it("counts what went away once, whether a load or the news tells of it first", async () => {
  const theirs = server.change("r1", { deleted_at: "2026-01-01T00:00:00Z" });
  await store.load();
  server.instead.push(done(), now([{ id: "r1", version: 2, is_deleted: true }]), page(theirs));
  await live.update();
  expect(store.total).toBe(0);
});

it("reads the events of the video again after each change of one", async () => {
  const load = vi.fn(() => Promise.resolve());
  live = new LiveUpdates("c1", store, () => ({ view: null, roi: null }), load);
  const counts: number[] = [];
  server.instead.push(done());
  for (const version of [0, 3, 3, 4]) {
    server.instead.push(now([], [], version));
    await live.update();
    counts.push(load.mock.calls.length);
  }
  expect(counts).toEqual([0, 1, 1, 2]);
});

it("counts what others drew", async () => {
  const theirs = roi({ id: "r2", version: 1 });
  server.instead.push(done(), now([{ id: "r2", version: 1, is_deleted: false }]), page(theirs));
  await live.update();
  expect([store.existingObjects().length, store.total]).toEqual([2, 2]);
});

it("never touches what is not saved here", async () => {
  store.get("r1")?.setFields({ name: "mine" });
  server.instead.push(done(), now([{ id: "r1", version: 2, is_deleted: false }]));
  await live.update();
  expect(store.get("r1")?.name).toBe("mine");
});

it("tells where it is when that changes, and else now and then", async () => {
  const puts = (): number => server.asked.filter(({ method }) => method === "PUT").length;
  server.instead.push(done(), same());
  await live.update();
  server.instead.push(same());
  await live.update();
  expect(puts()).toBe(1);
  chosen = "r1";
  vi.advanceTimersByTime(2000);
  server.instead.push(done(), same());
  await live.update();
  expect(puts()).toBe(2);
  vi.advanceTimersByTime(HEARTBEAT_MS);
  server.instead.push(done(), same());
  await live.update();
  expect(puts()).toBe(3);
});

it("waits longer after an error", async () => {
  server.instead.push(new Response("{}", { status: 503 }));
  expect(await live.update()).toBeGreaterThan(POLL_MS);
});
