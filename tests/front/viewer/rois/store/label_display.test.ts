import { beforeEach, expect, it, vi } from "vitest";

import { NO_CHANGES, readLabelDisplay, writeLabelDisplay } from "@/viewer/rois/store/label_display";

/** Storage of a browser in memory. */
function memory(): Pick<Storage, "getItem" | "setItem" | "clear"> {
  const kept = new Map<string, string>();
  return { getItem: (key) => kept.get(key) ?? null, setItem: (key, text) => kept.set(key, text), clear: () => kept.clear() };
}

const CHANGED = { colors: { l1: "#00ff00" }, hidden: ["l2", "none"], opacity: 0.4 };

beforeEach(() => {
  vi.stubGlobal("localStorage", memory());
  vi.stubGlobal("sessionStorage", memory());
});

it("is read as it was written, by the same person only", () => {
  writeLabelDisplay("ada", CHANGED);
  expect(readLabelDisplay("ada")).toEqual(CHANGED);
  expect(readLabelDisplay("bo")).toEqual(NO_CHANGES);
});

it("shows hidden labels again in another tab, in the colours that were chosen", () => {
  writeLabelDisplay("ada", CHANGED);
  sessionStorage.clear();
  expect(readLabelDisplay("ada")).toEqual({ ...CHANGED, hidden: [] });
});

it.each(["nonsense", "null", "[]", '{"colors": {"l1": "red; x"}, "opacity": 7}', '{"colors": 3, "opacity": "x"}'])("leaves out what makes no sense: %s", (text) => {
  localStorage.setItem("tessera-labels-ada", text);
  sessionStorage.setItem("tessera-labels-ada", text);
  expect(readLabelDisplay("ada")).toEqual(NO_CHANGES);
});
