import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { pass, stopClock } from "../../clock";
import { Server } from "../server";
import { drawn, syncing } from "../syncing";

let listeners: Record<string, (event: Event) => void> = {};

beforeEach(() => {
  stopClock();
  listeners = {};
  vi.stubGlobal("addEventListener", (name: string, listener: (event: Event) => void) => (listeners[name] = listener));
});

afterEach(() => vi.useRealTimers());

describe("leaving the page", () => {
  it("is asked about while something is not saved, which is sent at once", async () => {
    const server = new Server();
    const { sync } = syncing();
    sync.schedule(drawn());
    const leaving = new Event("beforeunload", { cancelable: true });
    listeners.beforeunload?.(leaving);
    expect(leaving.defaultPrevented).toBe(true);
    await pass(0);
    expect(server.rois.has("r1")).toBe(true);
  });

  it("is not asked about where this computer keeps what waits", () => {
    new Server();
    const { sync } = syncing();
    sync.isKept = () => true;
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
