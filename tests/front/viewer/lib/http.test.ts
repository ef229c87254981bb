import { beforeEach, describe, expect, it, vi } from "vitest";

import { ApiError, call, getAll, getJson, postJson } from "@/viewer/lib/http";

let cookie = "";
let field: { value: string } | null = null;

/** Answers each request with the next of these; returns what was asked. */
function answering(...answers: (Response | Error)[]): { url: string; init: RequestInit }[] {
  const asked: { url: string; init: RequestInit }[] = [];
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    asked.push({ url, init });
    const answer = answers.shift();
    if (!answer) throw new Error(`nothing answers ${url}`);
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  });
  return asked;
}

async function errorOf(answer: Response | Error): Promise<ApiError> {
  answering(answer);
  const error: unknown = await getJson("/api/v1/rois/").catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

beforeEach(() => {
  cookie = "";
  field = null;
  vi.stubGlobal("document", {
    get cookie() {
      return cookie;
    },
    querySelector: () => field,
  });
  vi.stubGlobal("location", new URL("https://portal.example/canvases/1/"));
});

describe("call", () => {
  it("reads without a token and without a body", async () => {
    const asked = answering(Response.json({ count: 3 }));
    expect(await getJson("/api/v1/rois/")).toEqual({ count: 3 });
    expect(asked[0]?.init).toMatchObject({ method: "GET", headers: { Accept: "application/json" }, body: null });
    expect(asked[0]?.init.headers).not.toHaveProperty("X-CSRFToken");
  });

  it("writes with the token of the cookie", async () => {
    cookie = "sessionid=1; csrftoken=a%2Fb";
    const asked = answering(Response.json({}));
    await postJson("/api/v1/rois/", { name: "x" });
    expect(asked[0]?.init.body).toBe('{"name":"x"}');
    expect(asked[0]?.init.headers).toMatchObject({ "X-CSRFToken": "a/b", "Content-Type": "application/json" });
  });

  it("falls back on the token in the page where the cookie is hidden from scripts", async () => {
    field = { value: "in the page" };
    const asked = answering(Response.json({}));
    await postJson("/api/v1/rois/", {});
    expect(asked[0]?.init.headers).toMatchObject({ "X-CSRFToken": "in the page" });
  });

  it("names the version that it changes", async () => {
    const asked = answering(Response.json({}));
    await call("/api/v1/rois/1/", { method: "PATCH", body: {}, ifMatch: 4 });
    expect(asked[0]?.init.headers).toMatchObject({ "If-Match": '"4"' });
  });
});

describe("ApiError", () => {
  it("carries the problem that the server told", async () => {
    const problem = { code: "geometry_invalid", title: "Bad", detail: "The outline crosses itself." };
    const error = await errorOf(Response.json(problem, { status: 400 }));
    expect(error).toMatchObject({ status: 400, code: "geometry_invalid", message: "The outline crosses itself." });
    expect(error.details).toEqual(problem);
    expect([error.isTemporary, error.isConflict]).toEqual([false, false]);
  });

  it("says what it can of an answer that is no JSON", async () => {
    const error = await errorOf(new Response("<h1>Bad gateway</h1>", { status: 502 }));
    expect(error.message).toBe("The server answered 502.");
    expect(error.isTemporary).toBe(true);
  });

  it("knows how long the server wants to be left alone", async () => {
    const error = await errorOf(Response.json({}, { status: 429, headers: { "Retry-After": "17" } }));
    expect([error.isTemporary, error.retryAfterS]).toEqual([true, 17]);
  });

  it("has no waiting time where the server gives a date", async () => {
    const headers = { "Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT" };
    expect((await errorOf(Response.json({}, { status: 503, headers }))).retryAfterS).toBeNull();
  });

  it("is a conflict where someone else was first", async () => {
    expect((await errorOf(Response.json({}, { status: 412 }))).isConflict).toBe(true);
    expect((await errorOf(Response.json({}, { status: 409 }))).isConflict).toBe(true);
  });

  it("has status 0 where nothing answered", async () => {
    const error = await errorOf(new TypeError("Failed to fetch"));
    expect(error).toMatchObject({ status: 0, code: "offline", isTemporary: true });
  });

  it("is none where the request was called off", async () => {
    answering(new DOMException("aborted", "AbortError"));
    await expect(getJson("/api/v1/rois/")).rejects.toThrow(DOMException);
  });
});

describe("getAll", () => {
  it("follows the pages to the last, on this origin whatever host they name", async () => {
    const asked = answering(
      Response.json({ results: [1, 2], next: "http://internal:8000/api/v1/labels/?cursor=x" }),
      Response.json({ results: [3], next: null }),
    );
    expect(await getAll("/api/v1/labels/")).toEqual([1, 2, 3]);
    expect(asked.map(({ url }) => url)).toEqual(["/api/v1/labels/", "/api/v1/labels/?cursor=x"]);
  });

  it("takes a bare list as it is", async () => {
    answering(Response.json([1, 2]));
    expect(await getAll("/api/v1/labels/")).toEqual([1, 2]);
  });
});
