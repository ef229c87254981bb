import { describe, expect, it } from "vitest";

import { ROI_MERGE } from "@/viewer/rois/store/merge";
import { versionOf } from "@/viewer/rois/store/roi_state";
import type { Version } from "@/viewer/rois/store/roi_state";
import { roi, square } from "../fake_server";

const base = versionOf(roi({ name: "old", label: "l1" }));
const version = (given: Partial<Version>): Version => ({ ...base, ...given });

describe("merging", () => {
  const mine = version({ name: "mine", geometry: square(1) });
  const theirs = version({ name: "theirs", label: "l2" });

  it("asks only about what differs, and knows what one side alone changed", () => {
    expect(ROI_MERGE.differingFields(mine, theirs)).toEqual(["geometry", "label", "name"]);
    expect(ROI_MERGE.automaticChoices(base, mine, theirs)).toEqual({ geometry: "mine", label: "theirs" });
    expect(ROI_MERGE.automaticChoices(null, mine, theirs)).toEqual({});
  });

  it("is not done before every difference is chosen", () => {
    expect(ROI_MERGE.mergedVersion(mine, theirs, { geometry: "mine", label: "theirs" })).toBeNull();
    const chosen = ROI_MERGE.mergedVersion(mine, theirs, { geometry: "theirs", label: "theirs", name: "mine" });
    expect(chosen).toEqual(version({ name: "mine", label: "l2" }));
  });

  it("by all of one side gives that side, the label included", () => {
    expect(ROI_MERGE.mergedVersion(mine, theirs, ROI_MERGE.allOf("mine", mine, theirs))).toEqual(mine);
    expect(ROI_MERGE.mergedVersion(mine, theirs, ROI_MERGE.allOf("theirs", mine, theirs))).toEqual(theirs);
  });

  it("keeps an outline and its shape together", () => {
    const ellipse = version({ shape: "ellipse" });
    expect(ROI_MERGE.differingFields(ellipse, base)).toEqual(["geometry"]);
    expect(ROI_MERGE.mergedVersion(ellipse, base, { geometry: "mine" })?.shape).toBe("ellipse");
  });

  it("sees a deletion as a field like the others", () => {
    expect(ROI_MERGE.automaticChoices(base, version({ deleted: true }), theirs)).toEqual({ deleted: "mine", label: "theirs", name: "theirs" });
  });
});
