import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { LOAD_ALL_LIMIT, RoiStore } from "@/viewer/rois/store/roi_store";
import { canvas } from "../../canvases";
import { pass, stopClock } from "../../clock";
import { FakeServer, roi } from "../fake_server";

beforeEach(() => {
  stopClock();
  vi.stubGlobal("addEventListener", () => undefined);
});

afterEach(() => vi.useRealTimers());

/** A store, and what it told, as "added r1 r2". */
function store(): { store: RoiStore; told: string[] } {
  const made = new RoiStore(canvas());
  const told: string[] = [];
  made.on("added", (states) => told.push(`added ${states.map(({ id }) => id).join(" ")}`));
  made.on("removed", (states) => told.push(`removed ${states.map(({ id }) => id).join(" ")}`));
  made.on("changed", ({ id }) => told.push(`changed ${id}`));
  made.on("error", (message) => told.push(`error ${message}`));
  return { store: made, told };
}

const many = (count: number): ReturnType<typeof roi>[] => Array.from({ length: count }, (_, i) => roi({ id: `r${i}` }));

describe("loading", () => {
  it("takes every page", async () => {
    const server = new FakeServer(...many(2300));
    const { store: made } = store();
    await made.load();
    expect([made.states.size, made.total, made.isWindowed]).toEqual([2300, 2300, false]);
    expect(server.asked).toHaveLength(3);
  });

  it("leaves it at the first page where there are too many, and takes those of the window", async () => {
    const server = new FakeServer(...many(LOAD_ALL_LIMIT + 1));
    const { store: made } = store();
    await made.load();
    expect([made.isWindowed, made.states.size, server.asked.length]).toEqual([true, 0, 1]);
    await made.loadWindow([0, 0, 100, 100]);
    expect([made.states.size, made.inWindow]).toEqual([3000, LOAD_ALL_LIMIT + 1]);
  });

  it("asks for no window where everything is there", async () => {
    const server = new FakeServer(roi());
    const { store: made } = store();
    await made.load();
    await made.loadWindow([0, 0, 100, 100]);
    expect(server.asked).toHaveLength(1);
  });

  it("lets go of what left the window, but not of what is not saved yet", async () => {
    const server = new FakeServer(...many(LOAD_ALL_LIMIT + 1));
    const { store: made, told } = store();
    await made.load();
    made.merge([roi({ id: "saved" }), roi({ id: "unsaved" })]);
    made.get("unsaved")?.setFields({ name: "mine" });
    server.rois.clear();
    await made.loadWindow([0, 0, 100, 100]);
    expect([...made.states.keys()]).toEqual(["unsaved"]);
    expect(told.at(-1)).toBe("removed saved");
  });

  it("says why it failed", async () => {
    new FakeServer().instead.push(Response.json({ detail: "The portal is being updated." }, { status: 503 }));
    const { store: made, told } = store();
    await made.load();
    expect(told).toEqual(["error The portal is being updated."]);
  });
});

describe("merge", () => {
  it("takes a newer version, and keeps its own of an older one", () => {
    const { store: made, told } = store();
    made.merge([roi({ name: "second", version: 2 })]);
    made.merge([roi({ name: "first", version: 1 })]);
    expect(made.get("r1")?.name).toBe("second");
    made.merge([roi({ name: "third", version: 3 })]);
    expect(made.get("r1")?.name).toBe("third");
    expect(told).toEqual(["added r1", "changed r1"]);
  });

  it("does not overwrite what is not saved yet", () => {
    const { store: made } = store();
    made.merge([roi()]);
    made.get("r1")?.setFields({ name: "mine" });
    made.merge([roi({ name: "theirs", version: 2 })]);
    expect(made.get("r1")?.name).toBe("mine");
  });

  it("holds a deleted one without showing it", () => {
    const { store: made, told } = store();
    made.merge([roi({ deleted_at: "2026-01-03T00:00:00Z" })]);
    expect([made.existingObjects(), told]).toEqual([[], []]);
  });
});

describe("fetchOne", () => {
  it("takes the ROI of a link, but none of another canvas", async () => {
    new FakeServer(roi({ id: "here" }), roi({ id: "elsewhere", canvas: "c2" }));
    const { store: made } = store();
    for (const id of ["here", "elsewhere", "nowhere"]) await made.fetchOne(id);
    expect([...made.states.keys()]).toEqual(["here"]);
  });
});

describe("freshen", () => {
  it("learns a little later that similar cases can be searched", async () => {
    const server = new FakeServer(roi({ is_embedded: false }));
    const { store: made, told } = store();
    await made.load();
    server.rois.set("r1", roi({ is_embedded: true }));
    const state = made.get("r1");
    if (state) made.refreshEmbedded(state);
    await pass(4000);
    expect(made.get("r1")?.server?.is_embedded).toBe(true);
    expect(told.at(-1)).toBe("changed r1");
  });
});
