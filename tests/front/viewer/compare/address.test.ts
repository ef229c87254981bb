import { expect, it } from "vitest";

import { readCompareLink, writeCompareLink } from "@/viewer/compare/address";
import type { CompareLink } from "@/viewer/compare/address";

const EMPTY_VIEW = { x: null, y: null, z: null, rot: 0, roi: null, t: null };

it("reads a link as it was written", () => {
  const link: CompareLink = {
    canvases: ["a", "b", "c"],
    views: [{ x: 10.5, y: 20, z: 2, rot: 15, roi: "r", t: null }, EMPTY_VIEW, { ...EMPTY_VIEW, t: 900 }],
    isSynced: false,
    query: "q",
  };
  const url = new URL(writeCompareLink(link), "http://portal");
  expect(url.pathname).toBe("/canvases/a/compare/");
  expect(readCompareLink("a", url.search)).toEqual(link);
});

it("leaves out parameters of no effect", () => {
  expect(writeCompareLink({ canvases: ["a"], views: [], isSynced: null, query: null })).toBe("/canvases/a/compare/");
  expect(readCompareLink("a", "?with=b")).toEqual({ canvases: ["a", "b"], views: [EMPTY_VIEW, EMPTY_VIEW], isSynced: null, query: null });
});

it("reads at most four images and drops malformed views", () => {
  const { canvases, views } = readCompareLink("a", "?with=b&with=c&with=d&with=e&v=1,2,-3&v=x,2,3");
  expect(canvases).toEqual(["a", "b", "c", "d"]);
  expect(views.slice(0, 2)).toEqual([{ ...EMPTY_VIEW, x: 1, y: 2 }, { ...EMPTY_VIEW, y: 2, z: 3 }]);
});
