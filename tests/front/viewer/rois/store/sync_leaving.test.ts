import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { pass, stopClock } from "../../clock";
import { FakeServer } from "../fake_server";
import { drawn, syncing } from "../sync_fixture";

let listeners: Record<string, (event: Event) => void> = {};

beforeEach(() => {
  stopClock();
  listeners = {};
  vi.stubGlobal("addEventListener", (name: string, listener: (event: Event) => void) => (listeners[name] = listener));
});

afterEach(() => vi.useRealTimers());

describe("leaving the page", () => {
  it("is asked about while something is not saved, which is sent at once", async () => {
    const server = new FakeServer();
    const { sync } = syncing();
    sync.schedule(drawn());
    const leaving = new Event("beforeunload", { cancelable: true });
    listeners.beforeunload?.(leaving);
    expect(leaving.defaultPrevented).toBe(true);
    await pass(0);
    expect(server.rois.has("r1")).toBe(true);
  });

  it("is not asked about where this computer keeps what waits", () => {
    new FakeServer();
    const { sync } = syncing();
    sync.isStoredLocally = () => true;
    sync.schedule(drawn());
    const leaving = new Event("beforeunload", { cancelable: true });
    listeners.beforeunload?.(leaving);
    expect(leaving.defaultPrevented).toBe(false);
  });

  it("is not asked about where all is saved", () => {
    syncing();
    const leaving = new Event("beforeunload", { cancelable: true });
    listeners.beforeunload?.(leaving);
    expect(leaving.defaultPrevented).toBe(false);
  });
});

describe("leaving the image for another one", () => {
  it("sends what waits at once and waits for the answer", async () => {
    const server = new FakeServer();
    const { sync } = syncing();
    sync.schedule(drawn());
    expect(sync.isSafeToLeave).toBe(false);
    const finished = sync.finish(2000);
    await pass(0);
    await finished;
    expect(server.rois.has("r1")).toBe(true);
    expect(sync.isSafeToLeave).toBe(true);
  });

  it.each([
    ["is refused", Response.json({ code: "invalid" }, { status: 400 })],
    ["is not answered", new TypeError()],
  ])("does not wait for what %s", async (_name, answer) => {
    const server = new FakeServer();
    server.instead.push(answer);
    const { sync } = syncing();
    sync.schedule(drawn());
    const finished = sync.finish(2000);
    await pass(0);
    await finished;
    expect(sync.pendingCount).toBe(1);
    sync.isStoredLocally = () => true;
    expect(sync.isSafeToLeave).toBe(true);
  });

  it("waits no longer than it is told to", async () => {
    new FakeServer();
    vi.stubGlobal("fetch", () => new Promise(() => undefined));
    const { sync } = syncing();
    sync.schedule(drawn());
    let isFinished = false;
    void sync.finish(2000).then(() => (isFinished = true));
    await pass(1999);
    expect(isFinished).toBe(false);
    await pass(1);
    expect(isFinished).toBe(true);
  });

  it("sends nothing any more", async () => {
    const server = new FakeServer();
    server.instead.push(new TypeError());
    const leaving = new AbortController();
    const { sync } = syncing(leaving.signal);
    sync.schedule(drawn());
    await pass(600);
    leaving.abort();
    sync.schedule(drawn());
    sync.retryNow();
    await pass(60_000);
    expect(server.asked).toHaveLength(1);
    await sync.idle();
  });
});
