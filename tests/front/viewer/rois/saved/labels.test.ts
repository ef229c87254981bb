import { beforeEach, expect, it, vi } from "vitest";

import { Labels, UNLABELLED_COLOR } from "@/viewer/rois/saved/labels";

beforeEach(() => {
  vi.stubGlobal("location", new URL("https://portal.example/canvases/c1/"));
});

/** So many labels, told by the server in the opposite order of their positions. */
async function labels(count: number): Promise<Labels> {
  const told = Array.from({ length: count }, (_, i) => ({ id: `l${i}`, name: `Label ${i}`, color: "#ff0000", position: count - i }));
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json(told)));
  return Labels.load("c1");
}

it("come in the order of the label set", async () => {
  expect((await labels(3)).all.map(({ id }) => id)).toEqual(["l2", "l1", "l0"]);
});

it("have number keys up to nine", async () => {
  const set = await labels(12);
  expect(set.onKeys).toHaveLength(9);
  expect(set.onKeys[0]).toBe(set.all[0]);
});

it("none, and one that was deleted, have a name and a colour too", async () => {
  const set = await labels(1);
  expect([set.nameOf("l0"), set.colorOf("l0")]).toEqual(["Label 0", "#ff0000"]);
  for (const id of [null, "gone"]) expect([set.nameOf(id), set.colorOf(id)]).toEqual(["No label", UNLABELLED_COLOR]);
});
