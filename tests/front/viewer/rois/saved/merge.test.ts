import { describe, expect, it } from "vitest";

import { allOf, clearChoices, differing, merged } from "@/viewer/rois/saved/merge";
import { versionOf } from "@/viewer/rois/saved/state";
import type { Version } from "@/viewer/rois/saved/state";
import { roi, square } from "../server";

const base = versionOf(roi({ name: "old", label: "l1" }));
const version = (given: Partial<Version>): Version => ({ ...base, ...given });

describe("merging", () => {
  const mine = version({ name: "mine", geometry: square(1) });
  const theirs = version({ name: "theirs", label: "l2" });

  it("asks only about what differs, and knows what one side alone changed", () => {
    expect(differing(mine, theirs)).toEqual(["geometry", "label", "name"]);
    expect(clearChoices(base, mine, theirs)).toEqual({ geometry: "mine", label: "theirs" });
    expect(clearChoices(null, mine, theirs)).toEqual({});
  });

  it("is not done before every difference is chosen", () => {
    expect(merged(mine, theirs, { geometry: "mine", label: "theirs" })).toBeNull();
    const chosen = merged(mine, theirs, { geometry: "theirs", label: "theirs", name: "mine" });
    expect(chosen).toEqual(version({ name: "mine", label: "l2" }));
  });

  it("by all of one side gives that side, the label included", () => {
    expect(merged(mine, theirs, allOf("mine", mine, theirs))).toEqual(mine);
    expect(merged(mine, theirs, allOf("theirs", mine, theirs))).toEqual(theirs);
  });

  it("keeps an outline and its shape together", () => {
    const ellipse = version({ shape: "ellipse" });
    expect(differing(ellipse, base)).toEqual(["geometry"]);
    expect(merged(ellipse, base, { geometry: "mine" })?.shape).toBe("ellipse");
  });

  it("sees a deletion as a field like the others", () => {
    expect(clearChoices(base, version({ deleted: true }), theirs)).toEqual({ deleted: "mine", label: "theirs", name: "theirs" });
  });
});
