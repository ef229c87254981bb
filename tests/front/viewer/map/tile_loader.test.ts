import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { TileLoader } from "@/viewer/map/tile_loader";
import { canvas } from "../canvases";
import { pass, stopClock } from "../clock";

const PICTURE = { width: 256, height: 256 };
let asked: string[] = [];

/** Answers tiles with these codes, one after the other (200: a picture), and the canvas with a new address. */
function serving(...codes: number[]): TileLoader {
  vi.stubGlobal("fetch", (url: string) => {
    asked.push(url);
    if (url.startsWith("/api/")) return Promise.resolve(Response.json(canvas({ tile_url: "/tiles/new/{z}/{x}/{y}.jpg" })));
    const code = codes.shift() ?? 500;
    return code === 0 ? Promise.reject(new TypeError("offline")) : Promise.resolve(new Response("", { status: code }));
  });
  return new TileLoader(canvas());
}

beforeEach(() => {
  asked = [];
  stopClock();
  vi.stubGlobal("createImageBitmap", () => Promise.resolve(PICTURE));
});

afterEach(() => vi.useRealTimers());

/** Lets every wait pass until `load` is through. */
async function through<T>(load: Promise<T>): Promise<T | Error> {
  const result: { is?: T | Error } = {};
  load.then((value) => (result.is = value)).catch((error: unknown) => (result.is = error as Error));
  while (result.is === undefined) await pass(100);
  return result.is;
}

describe("TileLoader", () => {
  it("fills zoom, column and row into the address", async () => {
    expect(await through(serving(200).load(1, 3, 2))).toBe(PICTURE);
    expect(asked).toEqual(["/tiles/old/1/3/2.jpg"]);
  });

  it("leaves the colour profile out where the stored values are asked for", async () => {
    const decode = vi.fn(() => Promise.resolve(PICTURE));
    vi.stubGlobal("createImageBitmap", decode);
    await through(serving(200).load(1, 0, 0));
    await through(serving(200).load(1, 0, 0, true));
    const asked = decode.mock.calls.map(([, options]: unknown[]) => options);
    expect(asked).toEqual([{ colorSpaceConversion: "default" }, { colorSpaceConversion: "none" }]);
  });

  it("tries twice more where the server stumbles", async () => {
    expect(await through(serving(503, 0, 200).load(1, 0, 0))).toBe(PICTURE);
    expect(asked).toHaveLength(3);
  });

  it("gives up after that", async () => {
    const loader = serving(500, 500, 500, 500);
    expect(await through(loader.load(1, 0, 0))).toBeInstanceOf(Error);
    expect(asked).toHaveLength(3);
  });

  it("asks for the address again where the old one is refused", async () => {
    expect(await through(serving(403, 200).load(1, 0, 0))).toBe(PICTURE);
    expect(asked).toEqual(["/tiles/old/1/0/0.jpg", "/api/v1/canvases/c1/", "/tiles/new/1/0/0.jpg"]);
  });

  it("asks for the address once for tiles that fail together", async () => {
    const loader = serving(403, 403, 403, 200, 200, 200);
    await through(Promise.all([loader.load(1, 0, 0), loader.load(1, 1, 0), loader.load(1, 2, 0)]));
    expect(asked.filter((url) => url.startsWith("/api/"))).toHaveLength(1);
  });

  it("says of a tile that it is no longer wanted", async () => {
    const gone = new AbortController();
    gone.abort();
    expect(await through(serving(0).load(1, 0, 0, false, gone.signal))).toMatchObject({ name: "AbortError" });
  });

  it("refuses a level that the file does not have", async () => {
    expect(await through(serving().load(2, 0, 0))).toEqual(new RangeError("no level 2"));
  });
});
