import { expect, it } from "vitest";

import { dateText } from "@/dom/dates";

const NOW = Date.UTC(2026, 4, 10, 12);
const S = 1000;
const HOUR = 3600 * S;

const ago = (ms: number): string => dateText(new Date(NOW + ms).toISOString(), "ago", NOW);

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
  expect(ago(distance)).toBe(text);
});

it("is a date beyond a week", () => {
  expect(ago(-8 * 24 * HOUR)).toContain("2026");
});

it("shows a date without a time as the same day in every zone", () => {
  const day = (iso: string): string => dateText(iso).replace(/\D+/g, " ").trim();
  expect(day("2026-03-09")).toMatch(/^0?9 2026$/);
});

it("leaves a text that is no date as it is", () => {
  expect(dateText("soon")).toBe("soon");
});
