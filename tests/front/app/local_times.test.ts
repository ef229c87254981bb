import { expect, it } from "vitest";

import { relative } from "@/app/local_times";

const NOW = Date.UTC(2026, 4, 10, 12);
const S = 1000;
const HOUR = 3600 * S;

it.each([
  [-20 * S, "just now"],
  [20 * S, "in a moment"],
  [-60 * S, "1 min. ago"],
  [-(HOUR - S), "59 min. ago"],
  [-HOUR, "1 hr. ago"],
  [5 * HOUR, "in 5 hr."],
  [-24 * HOUR, "yesterday"],
  [-7 * 24 * HOUR, "7 days ago"],
])("a moment %d ms from now is %s", (distance, text) => {
  expect(relative(new Date(NOW + distance), NOW)).toBe(text);
});

it("is a date beyond a week", () => {
  expect(relative(new Date(NOW - 8 * 24 * HOUR), NOW)).toContain("2026");
});
