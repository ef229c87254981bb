import { describe, expect, it } from "vitest";

import { hueOf, laneRows } from "@/viewer/video/events/lane_layout";

const item = (left: number, width: number, textWidth = width): { left: number; width: number; textWidth: number } => ({ left, width, textWidth });
const rows = (...items: ReturnType<typeof item>[]): number[] => laneRows(items, 1000, 3).map(({ row }) => row);

describe("rows of events", () => {
  it("are one where none overlaps another", () => {
    expect(rows(item(0, 100), item(104, 50), item(200, 10))).toEqual([0, 0, 0]);
  });

  it("are more where events overlap, up to three", () => {
    expect(rows(item(0, 300), item(10, 300), item(20, 100), item(310, 10))).toEqual([0, 1, 2, 0]);
  });

  it("leave room for the text beside a mark while there is some", () => {
    expect(rows(item(0, 10, 90), item(50, 10, 90))).toEqual([0, 1]);
    expect(rows(item(0, 10, 90), item(20, 10, 90), item(40, 10, 90), item(60, 10, 90))).toEqual([0, 1, 2, 0]);
  });

  it("share the row that ends first where all are taken", () => {
    expect(rows(item(0, 300), item(1, 200), item(2, 400), item(3, 10))).toEqual([0, 1, 2, 1]);
  });

  it("end the room of a text at the next event of the row, or at the end of the track", () => {
    expect(laneRows([item(0, 10, 90), item(500, 10, 90), item(960, 10, 90)], 1000, 1)).toEqual([
      { row: 0, room: 496 },
      { row: 0, room: 456 },
      { row: 0, room: 40 },
    ]);
  });

  it("are none without events", () => {
    expect(laneRows([], 1000, 3)).toEqual([]);
  });
});

it("gives a name the same hue in any case, and other names mostly others", () => {
  expect(hueOf(" Caecum")).toBe(hueOf("caecum"));
  const names = ["Caecum", "Terminal ileum", "Withdrawal", "Retroflexion", "Polyp in view", "Tool in view", "Biopsy", "Resection", "Washing"];
  expect(new Set(names.map(hueOf)).size).toBe(names.length);
  for (const name of names) expect(hueOf(name)).toBeLessThan(360);
});
