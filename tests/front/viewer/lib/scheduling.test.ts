import { beforeEach, expect, it, vi } from "vitest";

import { oncePerFrame } from "@/viewer/lib/scheduling";

let waiting: (() => void)[] = [];

/** The browser paints: all that waited for it runs. */
function paint(): void {
  const now = waiting;
  waiting = [];
  for (const run of now) run();
}

beforeEach(() => {
  waiting = [];
  vi.stubGlobal("requestAnimationFrame", (run: () => void) => waiting.push(run));
});

it("runs once, however often it is asked for before the browser paints", () => {
  let runs = 0;
  const ask = oncePerFrame(() => (runs += 1));
  ask();
  ask();
  expect(runs).toBe(0);
  paint();
  expect(runs).toBe(1);
});

it("runs again for what is asked for while it runs", () => {
  let runs = 0;
  const ask = oncePerFrame(() => {
    runs += 1;
    if (runs === 1) ask();
  });
  ask();
  paint();
  paint();
  paint();
  expect(runs).toBe(2);
});
