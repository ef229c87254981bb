import { expect, it } from "vitest";

import { rovingTarget } from "@/viewer/lib/roving_tabindex";

it.each([
  ["ArrowDown", 0, 1],
  ["ArrowDown", 3, 0],
  ["ArrowUp", 0, 3],
  ["ArrowLeft", 2, 1],
  ["Home", 2, 0],
  ["End", 0, 3],
  ["ArrowDown", -1, 0],
])("%s leads from %i to %i of four", (key, from, to) => {
  expect(rovingTarget(key, from, 4)).toBe(to);
});

it("leaves other keys alone", () => {
  expect(rovingTarget("Enter", 0, 4)).toBeNull();
});
