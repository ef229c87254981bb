/** Places of a slide that look like one of its ROIs; the slide may have to be looked through first. */

import { ApiError, API_ROOT, call } from "../../lib/http";
import { jobEnded } from "../../lib/jobs";
import type { Job } from "../../lib/jobs";
import type { Bounds } from "../shapes/outlines";

export interface Place {
  bounds: Bounds;
  /** Share of unrelated regions that come as close; null where nothing is known of it. */
  p_value: number | null;
  is_close: boolean | null;
}

export interface PlacesFound {
  /** The most similar first; none over another, none where ROIs are. */
  places: Place[];
  looked_at: number;
}

/** How far the job that is waited for has come; a total of 0 means that it is not known. */
export type Told = (progress: { isQueued: boolean; done: number; total: number }) => void;

/** The ROI is embedded, then the slide looked through; each may be asked for once more. */
const JOBS_MOST = 4;

/** Waits for whatever has to be done first. */
export async function placesLike(roi: string, told: Told, signal: AbortSignal): Promise<PlacesFound> {
  for (let jobs = 0; jobs < JOBS_MOST; jobs++) {
    const answer = await call(`${API_ROOT}/rois/${roi}/places/`, { signal });
    if (answer.status !== 202) return (await answer.json()) as PlacesFound;
    const { job } = (await answer.json()) as { job: Job };
    await ended(job, told, signal);
  }
  throw new ApiError(409, "busy", "The slide keeps changing. Try again in a moment.");
}

async function ended(job: Job, told: Told, signal: AbortSignal): Promise<void> {
  const { state, error } = await jobEnded(job, (now) => told({ isQueued: now.state === "queued", ...now.progress }), signal);
  if (state === "succeeded") return;
  throw new ApiError(409, state, error?.message ?? "The tissue of the slide could not be sampled.");
}
