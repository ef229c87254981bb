/** Regions of a slide similar to one of its ROIs; the slide may have to be sampled first. */

import type { Schemas } from "../../../api/schemas";
import { ApiError, API_ROOT, call } from "../../lib/http";
import { waitForJob } from "../../lib/jobs";
import type { Job } from "../../lib/jobs";

export type Place = Schemas["SimilarRegion"];
/** The most similar first; none over another, none if ROIs are. */
export type SimilarRegions = Schemas["SimilarRegions"];

/** Progress of the awaited job; a total of 0 means unknown. */
export type OnProgress = (progress: { isQueued: boolean; done: number; total: number }) => void;

/** Embedding and sampling jobs, each possibly repeated once. */
const MAX_JOBS = 4;

/** Waits for whatever has to be done first. */
export async function findSimilarRegions(roi: string, onProgress: OnProgress, signal: AbortSignal): Promise<SimilarRegions> {
  for (let jobs = 0; jobs < MAX_JOBS; jobs++) {
    const answer = await call(`${API_ROOT}/rois/${roi}/similar-regions/`, { signal });
    if (answer.status !== 202) return (await answer.json()) as SimilarRegions;
    const { job } = (await answer.json()) as Schemas["EmbeddingPending"];
    await waitForSampling(job, onProgress, signal);
  }
  throw new ApiError(409, "busy", "The slide keeps changing. Try again in a moment.");
}

async function waitForSampling(job: Job, onProgress: OnProgress, signal: AbortSignal): Promise<void> {
  const { state, error } = await waitForJob(job, (now) => onProgress({ isQueued: now.state === "queued", ...now.progress }), signal);
  if (state === "succeeded") return;
  throw new ApiError(409, state, error?.message ?? "The tissue of the slide could not be sampled.");
}
