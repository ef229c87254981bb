import { expect, it } from "vitest";

import { pathOf, viewBoxOf } from "@/viewer/rois/rendering/outline_preview";
import { changesText } from "@/viewer/rois/panel/revisions";
import type { RoiRevision } from "@/viewer/lib/types";
import { roi, square } from "../fake_server";

it("an outline is drawn ring by ring, parts and holes alike", () => {
  const parts = { type: "MultiPolygon" as const, coordinates: [[[[0, 0], [2, 0], [2, 2]]], [[[5, 5], [6, 5], [6, 6]]]] };
  expect(pathOf(parts as ReturnType<typeof square>)).toBe("M0 0L2 0L2 2ZM5 5L6 5L6 6Z");
});

it("what is shown lies in a square with room for the line", () => {
  expect(viewBoxOf([square(0)])).toBe("-0.8 -0.8 11.6 11.6");
  expect(viewBoxOf([square(0), square(90)])).toBe("-8 -8 116 116");
});

it("a version tells what it changed of the one before", () => {
  const before: RoiRevision = { ...roi({ label: "l1", name: "a" }), action: "update", author: null, label_name: "Tumor", label_version: null };
  const after: RoiRevision = { ...before, geometry: square(2), label: null, label_name: "", name: "", review_state: "accepted" };
  const nameOf = (label: string | null): string => (label ? "Tumor" : "No label");
  expect(changesText(before, after, nameOf)).toEqual([
    "outline",
    "label Tumor → No label",
    "name a → none",
    "review draft → accepted",
  ]);
  expect(changesText(before, { ...before }, nameOf)).toEqual([]);
});
