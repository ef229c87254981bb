import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { History } from "@/viewer/lib/history";
import { Drafts } from "@/viewer/lib/saving/drafts";
import { RoiEdits } from "@/viewer/rois/store/edits";
import type { StoredEdit } from "@/viewer/rois/store/roi_state";
import { RoiStore } from "@/viewer/rois/store/roi_store";
import { roiChangeText } from "@/viewer/rois/panel/roi_pending_changes";
import { canvas } from "../../canvases";
import { pass, stopClock } from "../../clock";
import { FakeServer, roi, square } from "../fake_server";
import { memoryShelf } from "../memory_storage";

let server: FakeServer;
let shelf: ReturnType<typeof memoryShelf<StoredEdit>>;

beforeEach(() => {
  stopClock();
  vi.stubGlobal("addEventListener", () => undefined);
  server = new FakeServer(roi({ name: "old" }));
  shelf = memoryShelf();
});

afterEach(() => vi.useRealTimers());

interface Visit {
  store: RoiStore;
  edits: RoiEdits;
  waited: number;
}

/** The page is opened; whoever opened it before is gone. */
async function visit(): Promise<Visit> {
  const store = new RoiStore(canvas());
  const drafts = new Drafts(store, shelf);
  const waited = await drafts.replay();
  await store.load();
  return { store, edits: new RoiEdits(store, new History()), waited };
}

const kept = async (): Promise<string[]> => (await shelf.getAll()).map(({ id }) => id);

describe("what is not saved", () => {
  it("survives the page, and is sent by the next visit in the order in which it was made", async () => {
    const { store, edits } = await visit();
    const first = store.get("r1");
    const drawn = edits.create({ geometry: square(3) }, "l1", null);
    if (first) edits.change(first, { name: "new" }, "Rename");
    vi.clearAllTimers(); // the browser is gone before anything was sent
    expect(server.writes).toBe("");
    const next = await visit();
    expect([next.waited, next.store.get("r1")?.name, next.store.total]).toEqual([2, "new", 2]);
    await pass(0);
    expect(server.writes).toBe("POST, PATCH 1");
    expect(server.rois.get(drawn.id)).toMatchObject({ geometry: square(3), label: "l1" });
    expect(await kept()).toEqual([]);
  });

  it("makes no second ROI where the answer was lost and the page with it", async () => {
    server.lost = 1;
    const { edits } = await visit();
    const drawn = edits.create({ geometry: square(3) }, null, null);
    await pass(600);
    vi.clearAllTimers();
    await visit();
    await pass(0);
    expect([server.rois.size, server.rois.get(drawn.id)?.version, await kept()]).toEqual([2, 1, []]);
  });

  it("stays with the reason where the server refuses it", async () => {
    server.instead.push(Response.json({ results: [], count: 0 }), Response.json({ detail: "No area." }, { status: 400 }));
    const { edits } = await visit();
    const drawn = edits.create({ geometry: square(3) }, null, null);
    await pass(600);
    const next = await visit();
    await pass(0);
    expect(next.store.get(drawn.id)?.problem).toEqual({ kind: "refused", message: "No area." });
    expect(await kept()).toEqual([drawn.id]);
  });

  it("meets what others did since, and asks", async () => {
    const { store, edits } = await visit();
    const first = store.get("r1");
    if (first) edits.change(first, { name: "mine" }, "Rename");
    vi.clearAllTimers();
    server.change("r1", { name: "theirs" });
    const next = await visit();
    let asked = "";
    next.store.sync.on("conflict", ({ theirs, base }) => (asked = `${base?.name} / ${theirs.name}`));
    await pass(0);
    expect([asked, server.rois.get("r1")?.name, await kept()]).toEqual(["old / theirs", "theirs", ["r1"]]);
  });

  it("is told in words", async () => {
    const { store, edits } = await visit();
    const first = store.get("r1");
    if (!first) throw new Error("not loaded");
    expect(roiChangeText(edits.create({ geometry: square(3) }, null, null))).toBe("New region");
    edits.change(first, { name: "new", label: "l2" }, "Rename");
    expect(roiChangeText(first)).toBe("Changed: label and name");
    edits.remove(first);
    expect(roiChangeText(first)).toBe("Deletion");
  });
});
