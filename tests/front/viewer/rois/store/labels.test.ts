import { beforeEach, expect, it, vi } from "vitest";

import { Labels, UNLABELLED_COLOR } from "@/viewer/rois/store/labels";

beforeEach(() => {
  vi.stubGlobal("location", new URL("https://portal.example/canvases/c1/"));
});

/** So many labels, told by the server in the opposite order of their positions. */
async function labels(count: number, more: Record<number, object> = {}): Promise<Labels> {
  const told = Array.from({ length: count }, (_, i) => ({ id: `l${i}`, name: `Label ${i}`, color: "#ff0000", position: count - i, parent: null, key: "", retired: false, ...more[i] }));
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json(told)));
  return Labels.load("c1");
}

it("come in the order of the label set", async () => {
  expect((await labels(3)).all.map(({ id }) => id)).toEqual(["l2", "l1", "l0"]);
});

it("have the number keys that the lab gave them", async () => {
  const set = await labels(3, { 0: { key: "1" }, 2: { key: "7" } });
  expect(set.onKeys.map(({ id, key }) => [key, id])).toEqual([
    ["1", "l0"],
    ["7", "l2"],
  ]);
});

it("stand below their parents, and retired ones are offered no more but have their name", async () => {
  const set = await labels(4, { 3: { parent: "l0" }, 1: { retired: true } });
  expect(set.all.map((label) => set.indented(label))).toEqual(["Label 2", "Label 0", "\u2003Label 3"]);
  expect(set.nameOf("l1")).toBe("Label 1");
});

it("none, and one that was deleted, have a name and a colour too", async () => {
  const set = await labels(1);
  expect([set.nameOf("l0"), set.colorOf("l0")]).toEqual(["Label 0", "#ff0000"]);
  for (const id of [null, "gone"]) expect([set.nameOf(id), set.colorOf(id)]).toEqual(["No label", UNLABELLED_COLOR]);
});

it("are shown in another colour on this screen until it is taken back", async () => {
  const set = await labels(2);
  set.setColor("l1", "#00ff00");
  expect([set.colorOf("l0"), set.colorOf("l1")]).toEqual(["#ff0000", "#00ff00"]);
  set.setColor("l1", null);
  expect(set.colorOf("l1")).toBe("#ff0000");
});

it("take in one that was made while the image is open", async () => {
  const set = await labels(1);
  const changed = vi.fn();
  set.on("list", changed);
  set.add({ ...set.all[0], id: "new", name: "New", key: "2", position: 9 } as never);
  expect(set.all.map(({ id }) => id)).toEqual(["l0", "new"]);
  expect(set.onKeys.map(({ id }) => id)).toEqual(["new"]);
  expect(changed).toHaveBeenCalledOnce();
});
