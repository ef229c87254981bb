import View from "ol/View";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { addressKeeper, applyView, readLink, writeLink } from "@/viewer/map/deep_link";
import type { LinkTarget } from "@/viewer/map/deep_link";
import type { MapView } from "@/viewer/map/map_view";
import { projectionOf } from "@/viewer/map/pixel_plane";
import { canvas } from "../canvases";
import { pass, stopClock } from "../clock";

const EMPTY_VIEW: LinkTarget = { x: null, y: null, z: null, rot: 0, roi: null, t: null };

describe("readLink", () => {
  it("reads every word of an address", () => {
    const link = readLink("?x=120.5&y=80&z=0.25&rot=-90&roi=r1&t=9000");
    expect(link).toEqual({ x: 120.5, y: 80, z: 0.25, rot: -90, roi: "r1", t: 9000 });
  });

  it("is nowhere without words", () => {
    expect(readLink("")).toEqual(EMPTY_VIEW);
  });

  it.each(["?x=abc&y=&z=Infinity&rot=NaN&t=1e999", "?z=0", "?z=-2"])("leaves out what makes no sense: %s", (search) => {
    expect(readLink(search)).toEqual(EMPTY_VIEW);
  });

  it("takes the start of the video for a frame", () => {
    expect(readLink("?t=0").t).toBe(0);
  });
});

describe("writeLink", () => {
  it("leaves out what is not there", () => {
    expect(writeLink(EMPTY_VIEW)).toBe("");
    expect(writeLink({ ...EMPTY_VIEW, x: 1, y: 2, z: 3, rot: 0.004 })).toBe("x=1.00&y=2.00&z=3");
  });

  it("is read as what was written", () => {
    const link = { x: 1234.57, y: 0.25, z: 0.0625, rot: 33.5, roi: "a b&c", t: 0 };
    expect(readLink(`?${writeLink(link)}`)).toEqual(link);
  });
});

describe("applyView", () => {
  const projection = projectionOf(canvas());
  const view = (): View => new View({ projection, center: [0, 0], resolution: 1, maxResolution: 64, minResolution: 1 / 16 });

  const mapOf = (seen: View): MapView => ({ view: seen, onPlaced: () => undefined }) as unknown as MapView;

  it("leaves the view alone where the link names no place", () => {
    const untouched = view();
    expect(applyView(mapOf(untouched), { ...EMPTY_VIEW, x: 5, z: 4 })).toBe(false);
    expect(untouched.getResolution()).toBe(1);
  });

  it("goes to the place, turned and magnified as the link says", () => {
    const moved = view();
    expect(applyView(mapOf(moved), { ...EMPTY_VIEW, x: 30, y: 40, z: 4, rot: 180 })).toBe(true);
    expect(moved.getCenter()).toEqual([30, -40]);
    expect(moved.getResolution()).toBe(4);
    expect(moved.getRotation()).toBeCloseTo(Math.PI, 12);
  });
});

describe("addressKeeper", () => {
  let written: string[] = [];

  beforeEach(() => {
    stopClock();
    written = [];
    vi.stubGlobal("location", { pathname: "/canvases/a/" });
    vi.stubGlobal("history", { state: null, replaceState: (_state: unknown, _title: string, url: string) => written.push(url) });
  });
  afterEach(() => vi.useRealTimers());

  it("writes the address once for many changes", async () => {
    const update = addressKeeper(() => "/canvases/a/?x=1");
    update();
    update();
    await pass(300);
    expect(written).toEqual(["/canvases/a/?x=1"]);
  });

  it("writes the last change when the image is left, and nothing afterwards", async () => {
    const leaving = new AbortController();
    const update = addressKeeper(() => "/canvases/a/?x=1", leaving.signal);
    update();
    leaving.abort();
    expect(written).toEqual(["/canvases/a/?x=1"]);
    update();
    await pass(300);
    expect(written).toEqual(["/canvases/a/?x=1"]);
  });

  it("leaves the address of another image alone", async () => {
    const update = addressKeeper(() => "/canvases/a/?x=1");
    update();
    vi.stubGlobal("location", { pathname: "/canvases/b/" });
    await pass(300);
    expect(written).toEqual([]);
  });
});
