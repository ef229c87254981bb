import { expect, it } from "vitest";

import { compareKeyBindings } from "@/viewer/compare/key_bindings";
import type { CompareActions } from "@/viewer/compare/key_bindings";

it("binds no key twice with four images and a video", () => {
  const panes = [{ player: {} }, { player: null }, { player: null }, { player: null }];
  const groups = compareKeyBindings({ panes } as unknown as CompareActions);
  expect(groups.map(({ title }) => title)).toEqual(["All images", "The image in use", "Video"]);
  const keys = groups.flatMap(({ bindings }) => bindings.flatMap((binding) => binding.keys));
  expect(keys.filter((key, place) => keys.indexOf(key) !== place)).toEqual([]);
});
