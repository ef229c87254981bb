import { describe, expect, it } from "vitest";

import { boxBetween, BoxHistory, moveBox, proposeBoxes, resizeBox } from "@/redaction/boxes";
import type { Box } from "@/redaction/boxes";

const BOX: Box = { x: 0.5, y: 0.5, width: 0.25, height: 0.25 };

describe("a box", () => {
  it("is drawn from any corner and ends at the picture's edge", () => {
    expect(boxBetween([0.75, 0.5], [0.25, 0.25])).toEqual({ x: 0.25, y: 0.25, width: 0.5, height: 0.25 });
    expect(boxBetween([0.5, 0.5], [1.5, 2])).toEqual({ x: 0.5, y: 0.5, width: 0.5, height: 0.5 });
  });

  it("is not made by a click", () => {
    expect(boxBetween([0.5, 0.5], [0.501, 0.7])).toBeNull();
  });

  it("stays within the picture when it is moved or resized", () => {
    expect(moveBox(BOX, 0.9, -0.9)).toEqual({ ...BOX, x: 0.75, y: 0 });
    expect(resizeBox(BOX, 0.9, 0)).toEqual({ ...BOX, width: 0.5 });
    expect(resizeBox(BOX, -0.9, 0).width).toBeGreaterThan(0);
  });
});

describe("proposed boxes", () => {
  it("surround text with a margin, and leave out findings of the full picture", () => {
    const text = { kind: "date", text: "12/03/1961", x: 0.25, y: 0.25, width: 0.5, height: 0.0625 };
    const full = { kind: "outside_body", text: "", x: 0, y: 0, width: 1, height: 1 };
    expect(proposeBoxes([text, full])).toEqual([{ x: 0.234375, y: 0.234375, width: 0.53125, height: 0.09375 }]);
  });

  it("are those of a template, and what was found outside them", () => {
    const inside = { kind: "date", text: "12/03/1961", x: 0.5, y: 0.5, width: 0.2, height: 0.2 };
    const outside = { kind: "name", text: "Doe", x: 0, y: 0, width: 0.2, height: 0.04 };
    expect(proposeBoxes([inside], [BOX])).toEqual([BOX]);
    expect(proposeBoxes([inside, outside], [BOX])).toEqual([BOX, { x: 0, y: 0, width: 0.21000000000000002, height: 0.05 }]);
  });
});

describe("the history of boxes", () => {
  it("takes back additions, changes and deletions, and repeats them", () => {
    const history = new BoxHistory([]);
    history.add(BOX);
    history.replace(0, moveBox(BOX, 0.1, 0));
    history.remove(0);
    expect(history.boxes).toHaveLength(0);
    history.undo();
    history.undo();
    expect(history.boxes).toEqual([BOX]);
    history.redo();
    expect(history.boxes[0]?.x).toBeCloseTo(0.6);
    history.add(BOX);
    expect(history.canRedo).toBe(false);
  });
});
