import { describe, expect, it } from "vitest";

import type { Part } from "@/upload/upload_row";
import { totalText } from "@/upload/total_progress";

const MIB = 2 ** 20;

function part(state: Part["state"], size: number, arrived: number): Part {
  return { state, size: size * MIB, arrived: arrived * MIB };
}

describe("the line of all files together", () => {
  it("says how many, how much and how long", () => {
    const parts = [part("stored", 10, 10), part("sending", 20, 5), part("waiting", 70, 0)];
    expect(totalText(parts, 170)).toBe("1 of 3 files received · 15 % of 100.0 MiB · 3 min left");
    expect(totalText(parts, null)).toBe("1 of 3 files received · 15 % of 100.0 MiB");
  });

  it("counts nothing that was removed, and tells apart what was not stored", () => {
    const parts = [part("stored", 10, 10), part("checking", 10, 10), part("gone", 90, 3), part("refused", 5, 5)];
    expect(totalText(parts, 0)).toBe("1 of 2 files received · 100 % of 20.0 MiB · 1 not stored");
  });

  it("is silent where a single row says all of it", () => {
    expect(totalText([part("sending", 10, 5), part("gone", 1, 0)], 9)).toBe("");
    expect(totalText([], null)).toBe("");
  });
});
