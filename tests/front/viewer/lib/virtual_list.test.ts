import { expect, it } from "vitest";

import { rowsInSight } from "@/viewer/lib/virtual_list";

it("draws the rows in sight and six beyond either edge", () => {
  // rows 10 to 14 of 40 px each are in sight
  expect(rowsInSight(400, 200, 40)).toEqual({ first: 4, end: 21 });
});

it("draws none before the first", () => {
  expect(rowsInSight(0, 200, 40)).toEqual({ first: 0, end: 11 });
});

it("covers what is in sight wherever the list stands", () => {
  for (let top = 0; top < 5000; top += 7) {
    const { first, end } = rowsInSight(top, 333, 44);
    expect(first * 44).toBeLessThanOrEqual(top);
    expect(end * 44).toBeGreaterThanOrEqual(top + 333);
    expect(end - first).toBeLessThanOrEqual(Math.ceil(333 / 44) + 12);
  }
});
