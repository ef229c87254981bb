import { expect, it } from "vitest";

import { readBeside, writeBeside } from "@/viewer/beside/address";
import type { BesideLink } from "@/viewer/beside/address";

const NOWHERE = { x: null, y: null, z: null, rot: 0, roi: null, t: null };

it("an address that was written is read as it was meant", () => {
  const link: BesideLink = {
    canvases: ["a", "b", "c"],
    views: [{ x: 10.5, y: 20, z: 2, rot: 15, roi: "r", t: null }, NOWHERE, { ...NOWHERE, t: 900 }],
    isTied: false,
    asked: "q",
  };
  const url = new URL(writeBeside(link), "http://portal");
  expect(url.pathname).toBe("/canvases/a/beside/");
  expect(readBeside("a", url.search)).toEqual(link);
});

it("says nothing of what follows from nothing", () => {
  expect(writeBeside({ canvases: ["a"], views: [], isTied: null, asked: null })).toBe("/canvases/a/beside/");
  expect(readBeside("a", "?with=b")).toEqual({ canvases: ["a", "b"], views: [NOWHERE, NOWHERE], isTied: null, asked: null });
});

it("reads no more than four, and no view that is none", () => {
  const { canvases, views } = readBeside("a", "?with=b&with=c&with=d&with=e&v=1,2,-3&v=x,2,3");
  expect(canvases).toEqual(["a", "b", "c", "d"]);
  expect(views.slice(0, 2)).toEqual([{ ...NOWHERE, x: 1, y: 2 }, { ...NOWHERE, y: 2, z: 3 }]);
});
