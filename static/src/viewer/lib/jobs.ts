/** Waiting for jobs of the portal. */

import type { Schemas } from "../../api/schemas";
import { API_ROOT, getJson } from "./http";

export type Job = Schemas["Job"];

/** Jobs take seconds; their bars move twice a second. */
const POLL_MS = 500;

/** True if the job waits or runs. */
export const isUnderWay = ({ state }: Pick<Job, "state">): boolean => state === "queued" || state === "running";

/** Wait for a job to end, reporting its progress. Throws an `AbortError` if `signal` is aborted. */
export async function waitForJob(job: Job, onProgress: (job: Job) => void, signal?: AbortSignal): Promise<Job> {
  let now = job;
  while (isUnderWay(now)) {
    onProgress(now);
    await pause(signal);
    now = await getJson<Job>(`${API_ROOT}/jobs/${job.id}/`, signal);
  }
  return now;
}

function pause(signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(new DOMException("stopped", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, POLL_MS);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
