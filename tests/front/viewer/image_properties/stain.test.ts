import { describe, expect, it } from "vitest";

import { ApiError } from "@/dom/http";
import { problemText } from "@/viewer/image_properties/stain";

describe("what the dialog says of a stain that was not saved", () => {
  it("names what somebody else said meanwhile", () => {
    const stale = (stain: string): ApiError => new ApiError(412, "stale-version", "Stale.", { current: { stain } });
    expect(problemText(stale("PAS"))).toContain("Its stain is now “PAS”.");
    expect(problemText(stale(""))).toContain("Its stain is now not known.");
  });

  it("says what the server says of anything else", () => {
    expect(problemText(new ApiError(403, "forbidden", "Annotators only."))).toBe("Annotators only.");
  });
});
