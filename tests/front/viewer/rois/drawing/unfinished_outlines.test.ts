import { beforeEach, describe, expect, it } from "vitest";

import { History } from "@/viewer/lib/history";
import { UnfinishedOutlines, newUnfinishedOutline } from "@/viewer/rois/drawing/unfinished_outlines";
import type { UnfinishedOutline } from "@/viewer/rois/drawing/unfinished_outlines";
import { setPoints } from "@/viewer/rois/drawing/sketch";
import type { FrameRef, Position } from "@/viewer/lib/types";
import { memoryShelf } from "../memory_storage";

const CORNERS: Position[] = [
  [0, 0],
  [9, 0],
  [9, 9],
];
const frame = (pts: number): FrameRef => ({ index: pts, pts, time_s: pts });
const drawn = (points = CORNERS, at: FrameRef | null = null): UnfinishedOutline =>
  newUnfinishedOutline({ points, tool: "polygon", frame: at });

let history: History;
let shelf: ReturnType<typeof memoryShelf<UnfinishedOutline>>;
/** What is under the pen. */
let held: UnfinishedOutline | null;
let outlines: UnfinishedOutlines;

beforeEach(() => {
  history = new History();
  shelf = memoryShelf();
  held = null;
  const stopDrawing = (): UnfinishedOutline | null => {
    const stopOr = held;
    held = null;
    return stopOr;
  };
  outlines = new UnfinishedOutlines({ resume: (outline) => (held = outline), stopDrawing }, history, shelf);
});

const kept = async (): Promise<string[]> => (await shelf.getAll()).map(({ id }) => id);

describe("Esc", () => {
  it("is undone with the outline open again, and done again with what it has become", async () => {
    const outline = drawn();
    outlines.cancel(outline);
    expect([await kept(), history.undo(), held]).toEqual([[], "Cancel outline", outline]);
    held = { ...outline, points: [...CORNERS, [0, 9]] };
    history.redo();
    expect(held).toBeNull();
    history.undo();
    expect((held as UnfinishedOutline | null)?.points).toHaveLength(4);
  });

  it("after one point is a step of its own: undo does not reach the ROI before", () => {
    let isRemoved = false;
    history.record({ label: "Draw ROI", undo: () => (isRemoved = true), redo: () => undefined });
    outlines.cancel(drawn([[1, 1]]));
    history.undo();
    expect([isRemoved, (held)?.points]).toEqual([false, [[1, 1]]]);
  });
});

describe("another tool", () => {
  it("puts the outline aside on its frame, the last one to go on with first", async () => {
    const [first, second, elsewhere] = [drawn(CORNERS, frame(1)), drawn(CORNERS, frame(1)), drawn(CORNERS, frame(2))];
    for (const outline of [first, second, elsewhere]) outlines.putAside(outline);
    expect(outlines.ofFrame(frame(1))).toEqual([first, second]);
    outlines.resumeLast(frame(1));
    expect([held, outlines.ofFrame(frame(1))]).toEqual([second, [first]]);
    expect(await kept()).toHaveLength(3); // what is under the pen is kept as well
  });

  it("leaves no mark for one point, yet undo brings it back", () => {
    const outline = drawn([[1, 1]]);
    outlines.putAside(outline);
    expect(outlines.all).toEqual([]);
    history.undo();
    expect(held).toEqual(outline);
  });

  it("is undone with the outline in hand", () => {
    const outline = drawn();
    outlines.putAside(outline);
    history.undo();
    expect([held, outlines.all]).toEqual([outline, []]);
    history.redo();
    expect([held, outlines.all]).toEqual([null, [outline]]);
  });
});

describe("the next visit", () => {
  it("finds what was put aside and what was under the pen, in order", async () => {
    const [first, second] = [drawn(), drawn()];
    outlines.putAside(first);
    outlines.handlePoint(second);
    const later = new UnfinishedOutlines({ resume: () => undefined, stopDrawing: () => null }, new History(), shelf);
    await later.load();
    expect(later.all).toEqual([first, second]);
  });

  it("does not find what was finished or discarded; discarding is undone", async () => {
    const [first, second] = [drawn(), drawn()];
    outlines.handlePoint(first);
    outlines.handleEnd(first.id);
    outlines.putAside(second);
    outlines.discard(second);
    expect(await kept()).toEqual([]);
    history.undo();
    expect([await kept(), outlines.all]).toEqual([[second.id], [second]]);
  });
});

it("the points that are set are those of the ring without its end, and without the pointer's", () => {
  const ring = [[1, -2], [3, -4], [5, -6.006], [1, -2]];
  expect(setPoints(ring, "freehand")).toEqual([[1, 2], [3, 4], [5, 6.01]]);
  expect(setPoints(ring, "polygon")).toEqual([[1, 2], [3, 4]]);
});
