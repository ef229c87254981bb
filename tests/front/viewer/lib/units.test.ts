import { describe, expect, it } from "vitest";

import { areaText, areaUnit, lengthText, magnificationText, roundStep, timeText } from "@/viewer/lib/units";

describe("areaText", () => {
  it("is in pixels where the scale is unknown", () => {
    expect(areaText(12345, null)).toBe("12,300 px²");
  });

  it("turns to square millimetres from a hundredth of one", () => {
    expect(areaText(1, 9_999)).toBe("10,000 µm²");
    expect(areaText(1, 10_000)).toBe("0.01 mm²");
    expect(areaText(1, 2_345_678)).toBe("2.35 mm²");
  });

  it("is in the unit of its list", () => {
    expect(areaUnit([10_000, 2_000_000, null, 0])).toBe("mm²"); // a line has no area
    expect(areaUnit([25, 2_000_000])).toBe("µm²");
    expect(areaText(1, 2_345_678, "µm²")).toBe("2,350,000 µm²");
  });
});

describe("lengthText", () => {
  it.each([
    [0.5, "0.5 µm"],
    [999, "999 µm"],
    [1000, "1 mm"],
    [9999, "10 mm"],
    [10_000, "1 cm"],
    [123_456, "12.3 cm"],
  ])("%d µm is %s", (um, text) => {
    expect(lengthText(um)).toBe(text);
  });
});

describe("magnificationText", () => {
  it("is a share of full size where the scale is unknown", () => {
    expect(magnificationText(1, null)).toBe("100 %");
    expect(magnificationText(4, null)).toBe("25 %");
  });

  it("calls 0.25 µm per screen pixel 40x", () => {
    expect(magnificationText(1, 0.25)).toBe("40.0×, 0.25 µm/px");
    expect(magnificationText(2, 0.25)).toBe("20.0×, 0.50 µm/px");
  });

  it("shows two decimals below 1x", () => {
    expect(magnificationText(64, 0.25)).toBe("0.63×, 16.00 µm/px");
  });
});

describe("timeText", () => {
  it.each([
    [0, "00:00.000"],
    [1.5, "00:01.500"],
    [61.0204, "01:01.020"],
    [3725.25, "62:05.250"],
  ])("%d s is %s", (seconds, text) => {
    expect(timeText(seconds)).toBe(text);
  });

  it("carries what rounds up to a minute", () => {
    expect(timeText(59.9996)).toBe("01:00.000");
  });
});

describe("roundStep", () => {
  it.each([
    [1, 1],
    [1.99, 1],
    [2, 2],
    [4.9, 2],
    [5, 5],
    [99, 50],
    [100, 100],
    [0.03, 0.02],
  ])("the step up to %d is %d", (limit, step) => {
    expect(roundStep(limit)).toBeCloseTo(step, 12);
  });

  it("fills at least two fifths of what there is room for", () => {
    for (let limit = 0.01; limit < 1e5; limit *= 1.07) {
      const step = roundStep(limit);
      expect(step).toBeLessThanOrEqual(limit * (1 + 1e-12));
      expect(step).toBeGreaterThan(limit * 0.4 - 1e-12);
    }
  });
});
