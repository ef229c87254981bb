import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { History } from "@/viewer/lib/history";
import { RoiEdits } from "@/viewer/rois/store/edits";
import { ROI_MERGE } from "@/viewer/rois/store/merge";
import { rotated, translated } from "@/viewer/rois/shapes/outlines";
import { versionOf } from "@/viewer/rois/store/roi_state";
import type { RoiState, Version } from "@/viewer/rois/store/roi_state";
import { RoiStore } from "@/viewer/rois/store/roi_store";
import type { Conflict } from "@/viewer/rois/store/sync";
import type { Roi, RoiGeometry } from "@/viewer/lib/types";
import { canvas } from "../../canvases";
import { pass, stopClock } from "../../clock";
import { FakeServer, roi, square } from "../fake_server";

let server: FakeServer;
let history: History;
let store: RoiStore;
let edits: RoiEdits;
let told: string[];

beforeEach(async () => {
  stopClock();
  vi.stubGlobal("addEventListener", () => undefined);
  server = new FakeServer(roi({ name: "old" }));
  history = new History();
  store = new RoiStore(canvas());
  edits = new RoiEdits(store, history);
  await store.load();
  told = [];
  for (const name of ["added", "removed"] as const) {
    store.on(name, (states) => told.push(`${name} ${states.map(({ id }) => id).join(" ")}`));
  }
});

afterEach(() => vi.useRealTimers());

const first = (): RoiState => store.get("r1") as RoiState;
/** Everything is saved. */
const saved = (): Promise<void> => pass(600);

const triangle: RoiGeometry = { type: "Polygon", coordinates: [[[3, 3], [13, 3], [13, 13], [3, 3]]] };

describe("a region of a fixed size", () => {
  it("keeps it when it is moved, and is an ordinary region once a vertex moves", () => {
    const properties = { "Fixed size": "square 1 mm²", Grade: "2" };
    edits.change(first(), { geometry: square(3), properties }, "Place");
    edits.change(first(), { geometry: translated(square(3), [5, 6]) }, "Move");
    expect(first().properties).toEqual(properties);
    edits.changeMany("Rotate", [{ state: first(), patch: { geometry: rotated(square(3), [0, 0], 1) } }]);
    expect(first().properties).toEqual(properties);
    edits.changeMany("Simplify", [{ state: first(), patch: { geometry: triangle } }]);
    expect(first().properties).toEqual({ Grade: "2" });
    history.undo();
    expect(first().properties).toEqual(properties);
  });
});

describe("drawing", () => {
  it("shows the ROI at once and saves it a little later", async () => {
    const state = edits.create({ geometry: square(3) }, "l1", { index: 4, pts: 160, time_s: 1.6 });
    expect([told, store.total]).toEqual([[`added ${state.id}`], 2]);
    await saved();
    expect(server.rois.get(state.id)).toMatchObject({ geometry: square(3), label: "l1", frame: { pts: 160 } });
  });

  it("is undone by deleting, done again by restoring", async () => {
    const state = edits.create({ geometry: square(3) }, null, null);
    await saved();
    expect(history.undo()).toBe("Draw region");
    expect([store.existingObjects(), store.total]).toEqual([[first()], 1]);
    await saved();
    expect(server.rois.get(state.id)?.deleted_at).not.toBeNull();
    history.redo();
    await saved();
    expect(server.rois.get(state.id)?.deleted_at).toBeNull();
    expect(store.total).toBe(2);
  });

  it("and undoing before it was saved sends nothing at all", async () => {
    edits.create({ geometry: square(3) }, null, null);
    history.undo();
    await saved();
    expect(server.writes).toBe("");
  });
});

describe("changing", () => {
  it("is undone and done again, each as a version of its own", async () => {
    edits.change(first(), { name: "new" }, "Rename");
    await saved();
    expect(history.undo()).toBe("Rename");
    await saved();
    expect(server.rois.get("r1")).toMatchObject({ name: "old", version: 3 });
    history.redo();
    await saved();
    expect(server.rois.get("r1")).toMatchObject({ name: "new", version: 4 });
  });

  it("takes back what it changed and nothing else", () => {
    edits.change(first(), { geometry: square(4) }, "Edit outline");
    edits.change(first(), { name: "new" }, "Rename");
    history.undo();
    expect(first()).toMatchObject({ name: "old", geometry: square(4) });
  });

  it("of an ROI that the window let go of holds it again", async () => {
    const state = first();
    edits.change(state, { name: "new" }, "Rename");
    await saved();
    store.states.delete("r1");
    history.undo();
    expect(store.get("r1")).toBe(state);
    await saved();
    expect(server.rois.get("r1")?.name).toBe("old");
  });
});

describe("deleting", () => {
  it("takes it off the page, and undo brings it back", async () => {
    edits.remove(first());
    expect([told, store.total]).toEqual([["removed r1"], 0]);
    await saved();
    history.undo();
    expect(told.at(-1)).toBe("added r1");
    await saved();
    expect(server.rois.get("r1")?.deleted_at).toBeNull();
  });
});

describe("a conflict", () => {
  beforeEach(async () => {
    server.change("r1", { name: "theirs", label: "l9" });
    edits.change(first(), { name: "mine" }, "Rename");
    await saved();
  });

  const theirs = (): Roi => server.rois.get("r1") as Roi;

  it("is merged field by field into one version: nothing changes that was not chosen", async () => {
    const result = ROI_MERGE.mergedVersion(first().version, versionOf(theirs()), { name: "mine", label: "theirs" });
    edits.merge(first(), theirs(), result as Version);
    await saved();
    expect(server.rois.get("r1")).toMatchObject({ name: "mine", label: "l9", version: 3 });
    expect(first().problem).toBeNull();
    history.undo();
    await saved();
    expect(server.rois.get("r1")).toMatchObject({ name: "theirs", label: "l9", version: 4 });
  });

  it("won by mine in all fields leaves none of theirs", async () => {
    edits.merge(first(), theirs(), first().version);
    await saved();
    expect(server.rois.get("r1")).toMatchObject({ name: "mine", label: null, version: 3 });
  });

  it("won by theirs sends nothing; undo brings mine back", async () => {
    edits.merge(first(), theirs(), versionOf(theirs()));
    await saved();
    expect([first().name, server.rois.get("r1")?.version]).toEqual(["theirs", 2]);
    history.undo();
    await saved();
    expect(server.rois.get("r1")).toMatchObject({ name: "mine", version: 3 });
  });

  it("with a deletion is settled by one version, too", async () => {
    server.change("r1", { deleted_at: "2026-01-03T00:00:00Z" });
    edits.merge(first(), theirs(), { ...first().version, deleted: false });
    await saved();
    expect(server.rois.get("r1")).toMatchObject({ name: "mine", deleted_at: null, version: 4 });
  });
});

describe("undo after somebody else changed the ROI", () => {
  const read = (): void => store.merge([server.rois.get("r1") as Roi]);

  it("asks where they changed the same, and sends nothing before the answer", async () => {
    const met: Conflict[] = [];
    store.sync.on("conflict", (conflict) => met.push(conflict));
    edits.change(first(), { name: "mine" }, "Rename");
    await saved();
    server.change("r1", { name: "theirs" });
    read();
    history.undo();
    await saved();
    expect(met.map(({ state, theirs, base }) => [state.name, theirs.name, base?.name])).toEqual([["old", "theirs", "mine"]]);
    expect(server.rois.get("r1")).toMatchObject({ name: "theirs", version: 3 });
  });

  it("takes back its own field where they changed another", async () => {
    edits.change(first(), { name: "mine" }, "Rename");
    await saved();
    server.change("r1", { label: "l9" });
    read();
    history.undo();
    await saved();
    expect(server.rois.get("r1")).toMatchObject({ name: "old", label: "l9", version: 4 });
  });

  it("never deletes with one's own drawing what they did to it", async () => {
    let isAsked = false;
    store.sync.on("conflict", () => (isAsked = true));
    const state = edits.create({ geometry: square(3) }, null, null);
    await saved();
    server.change(state.id, { label: "l9" });
    store.merge([server.rois.get(state.id) as Roi]);
    history.undo();
    await saved();
    expect([isAsked, server.rois.get(state.id)?.deleted_at]).toEqual([true, null]);
  });
});

describe("a step over many", () => {
  it("is undone without what others did to other fields meanwhile", async () => {
    const drawn = edits.create({ geometry: square(3) }, null, null);
    await saved();
    edits.changeMany("Set label", [first(), drawn].map((state) => ({ state, patch: { label: "l2" } })));
    await pass(0);
    server.change("r1", { name: "theirs" });
    store.merge([server.rois.get("r1") as Roi]);
    history.undo();
    await pass(0);
    expect(server.rois.get("r1")).toMatchObject({ name: "theirs", label: null });
    expect(server.rois.get(drawn.id)?.label).toBeNull();
  });

  it("whose answer is lost is made once, and asks nothing", async () => {
    let isAsked = false;
    store.sync.on("conflict", () => (isAsked = true));
    const drawn = edits.create({ geometry: square(3) }, null, null);
    await saved();
    server.lost = 1;
    edits.changeMany("Set label", [first(), drawn].map((state) => ({ state, patch: { label: "l2" } })));
    await pass(0);
    expect(store.sync.pendingCount).toBe(2);
    await pass(1000);
    for (let turn = 0; turn < 4; turn += 1) await pass(10);
    expect([server.rois.get("r1")?.version, server.rois.get(drawn.id)?.version]).toEqual([2, 2]);
    expect([isAsked, store.sync.pendingCount, first().label]).toEqual([false, 0, "l2"]);
  });
});

describe("discarding", () => {
  it("of a change shows what the server has, and undo takes it up again", async () => {
    server.instead.push(Response.json({ detail: "no" }, { status: 400 }));
    edits.change(first(), { name: "mine" }, "Rename");
    await saved();
    edits.discard(first());
    await saved();
    expect([first().name, store.sync.pendingCount]).toEqual(["old", 0]);
    history.undo();
    await saved();
    expect(server.rois.get("r1")?.name).toBe("mine");
  });

  it("of a new ROI takes it off, and undo draws it again", async () => {
    server.instead.push(Response.json({ detail: "no" }, { status: 400 }));
    const state = edits.create({ geometry: square(3) }, null, null);
    await saved();
    edits.discard(state);
    expect([store.get(state.id), store.total, store.sync.pendingCount]).toEqual([null, 1, 0]);
    history.undo();
    await saved();
    expect([server.rois.has(state.id), store.total]).toEqual([true, 2]);
  });
});
