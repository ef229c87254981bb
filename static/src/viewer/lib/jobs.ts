/** Jobs of the portal, waited for. */

import { API_ROOT, getJson } from "./http";

export interface Job {
  id: string;
  state: "queued" | "running" | "succeeded" | "failed" | "cancelled";
  progress: { done: number; total: number };
  error: { message: string } | null;
}

/** Jobs take seconds; their bars move twice a second. */
const LOOK_EVERY_MS = 500;

/** Whether it waits or runs. */
export const isUnderWay = ({ state }: Pick<Job, "state">): boolean => state === "queued" || state === "running";

/** The job once it has ended; `told` hears how far it is until then. Throws an `AbortError` once `signal` is aborted. */
export async function jobEnded<J extends Job>(job: J, told: (job: J) => void, signal?: AbortSignal): Promise<J> {
  let now = job;
  while (isUnderWay(now)) {
    told(now);
    await pause(signal);
    now = await getJson<J>(`${API_ROOT}/jobs/${job.id}/`, signal);
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
    }, LOOK_EVERY_MS);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
