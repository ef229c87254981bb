import { beforeEach, describe, expect, it } from "vitest";

import { NO_FILTER, passesFilter, restrictionCount, sorted } from "@/viewer/rois/panel/roi_filter";
import type { RoiFilter } from "@/viewer/rois/panel/roi_filter";
import { Labels } from "@/viewer/rois/store/labels";
import { RoiState } from "@/viewer/rois/store/roi_state";
import { roi } from "../fake_server";

const label = (id: string, name: string): object => ({ id, name, color: "#ff0000", position: 0, parent: null, key: "", retired: false });
const STATES = [
  roi({ id: "a", name: "Gland 10", label: "l1", created_by: "Ada", review_state: "accepted", area_um2: 50 }),
  roi({ id: "b", name: "", label: null, created_by: "Bo", review_state: "draft", area_um2: 500 }),
  roi({ id: "c", name: "Gland 9", label: "l2", created_by: null, review_state: "submitted", area_um2: null, area_px: 5 }),
].map((one) => RoiState.fromServer(one));
let labels: Labels;

const passing = (filter: Partial<RoiFilter>): string =>
  STATES.filter((state) => passesFilter(state, { ...NO_FILTER, ...filter }, labels)).map(({ id }) => id).join("");
const inOrder = (order: string): string => sorted(STATES, order, labels).map(({ id }) => id).join("");

beforeEach(() => {
  labels = Labels.empty();
  labels.add(label("l1", "Tumour") as never);
  labels.add(label("l2", "Stroma") as never);
});

describe("passesFilter", () => {
  it.each([
    [{}, "abc"],
    [{ label: "l1" }, "a"],
    [{ label: "none" }, "b"],
    [{ text: "gland" }, "ac"],
    [{ text: "stroma 9" }, "c"],
    [{ author: "Bo" }, "b"],
    [{ reviewState: "submitted" }, "c"],
    [{ minArea: 50 }, "ab"],
    [{ maxArea: 50 }, "ac"],
    [{ minArea: 50, maxArea: 50, author: "Ada" }, "a"],
  ])("with %j leaves %s", (filter, ids) => {
    expect(passing(filter)).toBe(ids);
  });

  it("leaves out the regions of hidden labels, also of none", () => {
    labels.setHidden("l2", true);
    expect(passing({})).toBe("ab");
    labels.setHidden(null, true);
    expect(passing({})).toBe("a");
    labels.setDisplay({ hidden: [] });
    expect(passing({})).toBe("abc");
  });

  it("shows what is not saved yet", () => {
    const fresh = new RoiState("n", null, { geometry: roi().geometry });
    expect(passesFilter(fresh, { ...NO_FILTER, author: "Ada", minArea: 9 }, labels)).toBe(true);
  });
});

describe("sorted", () => {
  it.each([
    ["", "abc"],
    ["newest", "cba"],
    ["name", "cab"],
    ["label", "cab"],
    ["author", "abc"],
    ["largest", "bac"],
    ["smallest", "cab"],
    ["review", "cba"],
  ])("by %s gives %s", (order, ids) => {
    expect(inOrder(order)).toBe(ids);
  });
});

it("counts the restrictions that are out of sight", () => {
  expect(restrictionCount(NO_FILTER)).toBe(0);
  expect(restrictionCount({ ...NO_FILTER, label: "l1", author: "Ada", maxArea: 0 })).toBe(2);
});
