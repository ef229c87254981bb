import { expect, it } from "vitest";

import { besideKeys } from "@/viewer/beside/keys";
import type { BesideActions } from "@/viewer/beside/keys";

it("gives no key two meanings, with four images and a video among them", () => {
  const panes = [{ player: {} }, { player: null }, { player: null }, { player: null }];
  const groups = besideKeys({ panes } as unknown as BesideActions);
  expect(groups.map(({ title }) => title)).toEqual(["All images", "The image in use", "Video"]);
  const keys = groups.flatMap(({ bindings }) => bindings.flatMap((binding) => binding.keys));
  expect(keys.filter((key, place) => keys.indexOf(key) !== place)).toEqual([]);
});
