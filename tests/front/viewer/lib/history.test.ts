import { describe, expect, it } from "vitest";

import { History } from "@/viewer/lib/history";

/** A history of a number that commands add to. */
function counter(): { history: History; value: () => number; add: (by: number) => void } {
  const history = new History();
  let value = 0;
  const add = (by: number): void => {
    value += by;
    history.record({ label: `Add ${by}`, undo: () => (value -= by), redo: () => (value += by) });
  };
  return { history, value: () => value, add };
}

describe("History", () => {
  it("has nothing to take back at first", () => {
    const { history } = counter();
    expect([history.undo(), history.redo(), history.undoLabel, history.redoLabel]).toEqual([null, null, null, null]);
  });

  it("takes back in the opposite order and does again in the first", () => {
    const { history, value, add } = counter();
    add(1);
    add(10);
    expect(history.undo()).toBe("Add 10");
    expect(value()).toBe(1);
    expect(history.undo()).toBe("Add 1");
    expect(value()).toBe(0);
    expect(history.redo()).toBe("Add 1");
    expect(history.redo()).toBe("Add 10");
    expect(value()).toBe(11);
  });

  it("names what the next step would do", () => {
    const { history, add } = counter();
    add(1);
    add(2);
    history.undo();
    expect([history.undoLabel, history.redoLabel]).toEqual(["Add 1", "Add 2"]);
  });

  it("forgets what was taken back once something new is done", () => {
    const { history, value, add } = counter();
    add(1);
    history.undo();
    add(5);
    expect(history.redo()).toBeNull();
    expect(value()).toBe(5);
  });

  it("goes back to the first of a thousand", () => {
    const { history, value, add } = counter();
    for (let i = 0; i < 1000; i += 1) add(1);
    while (history.undo() !== null);
    expect(value()).toBe(0);
  });

  it("takes steps that were recorded together back as one, the last one first", () => {
    const { history, value, add } = counter();
    const order: number[] = [];
    history.recordGroup("Both", () => {
      add(1);
      history.record({ label: "b", undo: () => order.push(value()), redo: () => undefined });
    });
    expect([history.undo(), value(), order]).toEqual(["Both", 0, [1]]);
    expect([history.redo(), value()]).toEqual(["Both", 1]);
    history.recordGroup("Nothing", () => undefined);
    expect(history.undoLabel).toBe("Both");
  });

  it("tells of every change, and of no step that did nothing", () => {
    const { history, add } = counter();
    let told = 0;
    history.on("change", () => (told += 1));
    add(1);
    history.undo();
    history.undo();
    history.redo();
    history.redo();
    expect(told).toBe(3);
  });
});
