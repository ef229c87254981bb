import { describe, expect, it } from "vitest";

import { NONE, colorsOf, pointsOf, legendEntries } from "@/explore/color_scale";
import type { Colouring } from "@/explore/map_points";

function colouring(name: Colouring["name"], count: number, at: number[] = [], color = ""): Colouring {
  const values = Array.from({ length: count }, (_, n) => ({
    value: `v${n}`,
    name: `Value ${n}`,
    color,
    count: count - n,
  }));
  return { name, values, at };
}

describe("the legend", () => {
  it("shows labels in their own colours, however many there are", () => {
    const rows = legendEntries(colouring("label", 20, [0, 1], "#123456"));
    expect(rows).toHaveLength(20);
    expect(new Set(rows.map((row) => row.color))).toEqual(new Set(["#123456"]));
    expect(rows[3]).toMatchObject({ name: "Value 3", values: [3], count: 17 });
  });

  it("tells twelve values apart and puts the others together", () => {
    const rows = legendEntries(colouring("organ", 15));
    expect(rows).toHaveLength(13);
    expect(new Set(rows.map((row) => row.color)).size).toBe(13);
    expect(rows[12]).toMatchObject({ name: "3 others", values: [12, 13, 14], count: 3 + 2 + 1 });
    expect(legendEntries(colouring("organ", 12))).toHaveLength(12);
  });

  it("ends with what has no value, counted", () => {
    const rows = legendEntries(colouring("organ", 2, [0, -1, 1, -1, -1]));
    expect(rows.at(-1)).toEqual({ name: "None", color: NONE, count: 3, values: [-1] });
    expect(legendEntries(colouring("organ", 2, [0, 1]))).toHaveLength(2);
    expect(legendEntries(colouring("label", 2, [0, -1])).at(-1)?.name).toBe("No label");
  });

  it("has each value in exactly one row", () => {
    for (const count of [0, 1, 12, 13, 40]) {
      const values = legendEntries(colouring("scanner", count)).flatMap((row) => row.values);
      expect(values).toEqual(Array.from({ length: count }, (_, at) => at));
    }
  });

  it("gives a label without a colour one of the row", () => {
    const [first, second] = legendEntries(colouring("label", 2));
    expect(first?.color).toMatch(/^#[0-9a-f]{6}$/);
    expect(first?.color).not.toBe(second?.color);
  });
});

describe("the colours of points", () => {
  const labels = colouring("label", 2, [0, -1, 1, 1], "#123456");

  it("are those of their rows of the legend, and none where their value is hidden", () => {
    expect(colorsOf(labels, legendEntries(labels), new Set())).toEqual(["#123456", NONE, "#123456", "#123456"]);
    expect(colorsOf(labels, legendEntries(labels), new Set([1, -1]))).toEqual(["#123456", null, null, null]);
  });

  it("go by the value where two labels have one name", () => {
    const values = labels.values.map((value) => ({ ...value, name: "Tumour" }));
    const twins = { ...labels, values };
    expect(colorsOf(twins, legendEntries(twins), new Set([0]))).toEqual([null, NONE, "#123456", "#123456"]);
    expect(legendEntries(twins).map((row) => pointsOf(twins, row))).toEqual([[0], [2, 3], [1]]);
  });

  it("put the points of the values together that one row stands for", () => {
    const organs = colouring("organ", 15, [14, 0, 12, -1]);
    const rows = legendEntries(organs);
    expect(rows.map((row) => pointsOf(organs, row)).filter((found) => found.length)).toEqual([[1], [0, 2], [3]]);
  });
});
