import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { History } from "@/viewer/lib/history";
import { RoiEdits, newRoiState } from "@/viewer/rois/store/edits";
import type { RoiState } from "@/viewer/rois/store/roi_state";
import { RoiStore } from "@/viewer/rois/store/roi_store";
import { canvas } from "../canvases";
import { pass, stopClock } from "../clock";
import { FakeServer, roi, square } from "./fake_server";

let server: FakeServer;
let history: History;
let store: RoiStore;
let edits: RoiEdits;
let onRefused: string[];

beforeEach(async () => {
  stopClock();
  vi.stubGlobal("addEventListener", () => undefined);
  server = new FakeServer(...["r1", "r2", "r3"].map((id) => roi({ id })));
  history = new History();
  store = new RoiStore(canvas());
  edits = new RoiEdits(store, history);
  onRefused = [];
  edits.onRefused = (reason) => onRefused.push(reason);
  await store.load();
});

afterEach(() => vi.useRealTimers());

const state = (id: string): RoiState => store.get(id) as RoiState;
const all = (): RoiState[] => ["r1", "r2", "r3"].map(state);
const stored = (field: "label" | "name" | "version" | "deleted_at"): unknown[] =>
  ["r1", "r2", "r3"].map((id) => server.rois.get(id)?.[field]);
const saved = (): Promise<void> => pass(600);

describe("many at once", () => {
  it("are one request and one step, and undone by one request", async () => {
    edits.changeMany("Set label", all().map((one) => ({ state: one, patch: { label: "l1" } })));
    await saved();
    expect([stored("label"), server.writes]).toEqual([["l1", "l1", "l1"], "POST"]);
    expect(history.undo()).toBe("Set label");
    await saved();
    expect([stored("label"), stored("version"), server.writes]).toEqual([[null, null, null], [3, 3, 3], "POST, POST"]);
    expect(store.sync.pendingCount).toBe(0);
  });

  it("delete, create and change; undoing takes back all of it", async () => {
    const copy = newRoiState({ geometry: square(30), name: "copy" }, null);
    edits.changeMany("Mix", [
      { state: state("r1"), deleted: true },
      { state: state("r2"), patch: { name: "new" } },
      { state: copy, deleted: false },
    ]);
    expect(store.existingObjects().map(({ id }) => id)).toEqual(["r2", "r3", copy.id]);
    await saved();
    expect(server.rois.get(copy.id)).toMatchObject({ name: "copy", deleted_at: null });
    history.undo();
    await saved();
    expect(stored("deleted_at")).toEqual([null, null, null]);
    expect(server.rois.get(copy.id)?.deleted_at).not.toBeNull();
    expect(store.total).toBe(3);
  });

  it("go one by one where somebody else changed one of them: only that one is in conflict", async () => {
    const conflicts: string[] = [];
    store.sync.on("conflict", ({ state: { id } }) => conflicts.push(id));
    server.change("r2", { name: "theirs" });
    edits.changeMany("Set label", all().map((one) => ({ state: one, patch: { label: "l1" } })));
    await saved();
    await saved();
    expect([stored("label"), conflicts]).toEqual([["l1", null, "l1"], ["r2"]]);
  });

  it("are sent again after a broken line, and a lost answer is no conflict", async () => {
    server.instead.push(new TypeError("offline"));
    edits.changeMany("Rename", all().map((one) => ({ state: one, patch: { name: "x" } })));
    for (const id of ["r1", "r2", "r3"]) server.change(id, { name: "x" }); // the request arrived, its answer did not
    await pass(1100);
    await pass(1100);
    expect([stored("name"), stored("version"), store.sync.pendingCount]).toEqual([["x", "x", "x"], [2, 2, 2], 0]);
  });

  it("are sent again under the key they had, so that what others changed since is no conflict", async () => {
    const conflicts: string[] = [];
    store.sync.on("conflict", ({ state: { id } }) => conflicts.push(id));
    server.lost = 2;
    edits.changeMany("Rename", all().map((one) => ({ state: one, patch: { name: "x" } })));
    await pass(100);
    server.change("r2", { name: "theirs" });
    await pass(4000);
    const keys = server.asked.filter(({ method }) => method === "POST").map(({ key }) => key);
    expect([server.writes, new Set(keys).size, keys[0]?.length]).toEqual(["POST, POST, POST", 1, 36]);
    expect([stored("name"), state("r2").name, conflicts]).toEqual([["x", "theirs", "x"], "theirs", []]);
    expect(store.sync.pendingCount).toBe(0);
  });

  it.each([["one", ["r1"]], ["many", ["r1", "r2", "r3"]]])(
    "of %s, taken back while its answer is lost, are taken back on the server",
    async (_, ids) => {
      server.lost = 1;
      const renamed = ids.map((id) => ({ state: state(id), patch: { name: "x" } }));
      if (ids.length > 1) edits.changeMany("Rename", renamed);
      else edits.change(state("r1"), { name: "x" }, "Rename");
      await pass(700);
      expect(server.rois.get("r1")?.name).toBe("x");
      history.undo();
      await pass(4000);
      expect([stored("name"), state("r1").name, store.sync.pendingCount]).toEqual([["", "", ""], "", 0]);
    },
  );

  it("brought back with a change, keep the change", async () => {
    const both = [state("r1"), state("r2")];
    edits.changeMany("Delete", both.map((one) => ({ state: one, deleted: true })));
    await saved();
    edits.changeMany("Rename", both.map((one) => ({ state: one, patch: { name: "x" } })));
    await pass(2000);
    expect([stored("name"), stored("deleted_at")]).toEqual([["x", "x", ""], [null, null, null]]);
    expect([state("r1").name, store.sync.pendingCount]).toEqual(["x", 0]);
  });

  it("ask where somebody brought back what was deleted, before the answer came", async () => {
    const conflicts: string[] = [];
    store.sync.on("conflict", ({ state: { id } }) => conflicts.push(id));
    server.lost = 1;
    edits.changeMany("Delete", [state("r1"), state("r2")].map((one) => ({ state: one, deleted: true })));
    await pass(100);
    server.change("r2", { deleted_at: null });
    await pass(4000);
    expect([conflicts, server.writes, server.rois.get("r2")?.deleted_at]).toEqual([["r2"], "POST, POST", null]);
  });

  it("are not changed where one is locked, but can be unlocked together", async () => {
    edits.change(state("r1"), { locked: true }, "Lock");
    await saved();
    expect(edits.changeMany("Delete", all().map((one) => ({ state: one, deleted: true })))).toBe(false);
    edits.change(state("r1"), { name: "x" }, "Rename");
    edits.remove(state("r1"));
    expect(onRefused).toEqual(Array(3).fill("The region is locked."));
    expect(edits.changeMany("Unlock", [{ state: state("r1"), patch: { locked: false } }])).toBe(true);
    await saved();
    expect(server.rois.get("r1")).toMatchObject({ locked: false, version: 3, deleted_at: null });
  });

  it("an ellipse that is moved stays one, and undoing a new outline brings it back", async () => {
    edits.change(state("r1"), { shape: "ellipse" }, "x");
    edits.change(state("r1"), { geometry: square(4), shape: "ellipse" }, "Move");
    await saved();
    expect(server.asked.at(-1)?.body).toMatchObject({ geometry: square(4), shape: "ellipse" });
    edits.change(state("r1"), { geometry: square(5) }, "Edit outline");
    expect(state("r1").shape).toBe("polygon");
    history.undo();
    expect(state("r1").shape).toBe("ellipse");
  });
});
