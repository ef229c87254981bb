import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { isUnderWay, waitForJob } from "@/viewer/lib/jobs";
import type { Job } from "@/viewer/lib/jobs";

const job = (state: Job["state"], done = 0): Job =>
  ({ id: "j1", state, progress: { done, total: 9, percent: 0 }, error: null }) as Job;

/** Answers each request with the next of these; returns the addresses that were asked. */
function answering(...answers: Job[]): string[] {
  const asked: string[] = [];
  vi.stubGlobal("fetch", (url: string) => {
    asked.push(url);
    return Promise.resolve(new Response(JSON.stringify(answers.shift())));
  });
  return asked;
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("waits and runs, or has ended", () => {
  const all = ["queued", "running", "succeeded", "failed", "cancelled"] as const;
  expect(all.filter((state) => isUnderWay({ state }))).toEqual(["queued", "running"]);
});

it("is asked for until it has ended, and tells how far it is", async () => {
  const asked = answering(job("running", 4), job("failed", 5));
  const told: number[] = [];
  const ended = waitForJob(job("queued"), ({ progress }) => told.push(progress.done));
  await vi.runAllTimersAsync();
  expect((await ended).state).toBe("failed");
  expect([told, asked]).toEqual([[0, 4], ["/api/v1/jobs/j1/", "/api/v1/jobs/j1/"]]);
});

it("is not asked for where it has ended already", async () => {
  const asked = answering();
  expect(await waitForJob(job("cancelled"), () => undefined)).toEqual(job("cancelled"));
  expect(asked).toEqual([]);
});

it("is left alone once nobody waits for it", async () => {
  const asked = answering();
  const stop = new AbortController();
  const ended = waitForJob(job("running"), () => undefined, stop.signal);
  stop.abort();
  await expect(ended).rejects.toMatchObject({ name: "AbortError" });
  await vi.runAllTimersAsync();
  expect(asked).toEqual([]);
});
