import { describe, expect, it } from "vitest";

import { FIRST_CHUNK_BYTES, nextChunkBytes, TransferRate, percentText, sizeText, timeText } from "@/upload/transfer_rate";

describe("the pace of a transfer", () => {
  it("is not told before a second has passed", () => {
    const pace = new TransferRate();
    pace.add(0, 0);
    pace.add(0.5, 1000);
    expect([pace.rate, pace.secondsLeft(5000)]).toEqual([null, null]);
  });

  it("is that of the last seconds only", () => {
    const pace = new TransferRate();
    pace.add(0, 0);
    for (let at = 1; at <= 30; at += 1) pace.add(at, at < 20 ? 10 : 10 + 1000 * (at - 20));
    expect(pace.rate).toBe(1000);
    expect(pace.secondsLeft(12_010)).toBeCloseTo(2);
  });

  it("begins anew after a pause, and never promises what does not move", () => {
    const pace = new TransferRate();
    pace.add(0, 100);
    pace.add(5, 100);
    expect(pace.secondsLeft(200)).toBeNull();
    pace.reset();
    expect(pace.rate).toBeNull();
  });

  it("never says that all is there while a byte is missing", () => {
    expect([percentText(999, 1000), percentText(1000, 1000), percentText(0, 0)]).toEqual(["99 %", "100 %", "0 %"]);
  });

  it.each([
    [0, "0 bytes"],
    [1536, "1.5 KiB"],
    [100 * 2 ** 30, "100.0 GiB"],
  ])("says %d bytes as %s", (bytes, text) => expect(sizeText(bytes)).toBe(text));

  it.each([
    [0.2, "1 s"],
    [75, "1 min"],
    [5400, "1 h 30 min"],
  ])("says %d seconds as %s", (seconds, text) => expect(timeText(seconds)).toBe(text));
});

describe("the pieces of a file", () => {
  const after = (seconds: number, count: number) => {
    let bytes = FIRST_CHUNK_BYTES;
    for (let n = 0; n < count; n++) bytes = nextChunkBytes(bytes, seconds);
    return bytes / 2 ** 20;
  };

  it("grow on a fast line and shrink on a slow one, within bounds", () => {
    expect([after(0.1, 1), after(0.1, 2), after(0.1, 9)]).toEqual([32, 64, 128]);
    expect([after(30, 1), after(30, 9)]).toEqual([8, 4]);
    expect(after(5, 9)).toBe(16);
  });
});
