/** Export of a span of frames: ordered, waited for with its progress, downloaded. */

import { element } from "../../dom/elements";
import { API_ROOT, ApiError, call, postJson } from "../lib/http";
import { waitForJob } from "../lib/jobs";
import type { Job } from "../lib/jobs";

/** Text of the progress of a clip. */
export function clipProgressText({ state, progress }: Pick<Job, "state" | "progress">): string {
  if (state === "queued") return "Waiting for a worker…";
  return progress.total ? `Writing… frame ${progress.done} of ${progress.total}` : "Writing…";
}

export interface ClipSpan {
  first: number;
  last: number;
}

/** A button that downloads a clip of a video; a second press while one is written stops it. */
export class ClipButton {
  private stop: AbortController | null = null;

  constructor(
    private readonly button: HTMLButtonElement,
    private readonly status: HTMLElement,
    private readonly video: string,
    private readonly span: () => ClipSpan | null,
    private readonly leaving: AbortSignal,
  ) {
    button.addEventListener("click", () => {
      if (this.stop) this.stop.abort();
      else void this.download();
    });
  }

  private async download(): Promise<void> {
    const span = this.span();
    if (!span) return;
    const stop = new AbortController();
    this.stop = stop;
    const label = this.button.textContent;
    this.button.textContent = "Stop";
    try {
      const problem = await this.requestClip(span, stop.signal);
      this.status.textContent = problem;
      if (!problem) element("a", { href: this.url(span), download: "" }).click();
    } catch (error) {
      if (this.leaving.aborted) return;
      this.status.textContent = error instanceof ApiError ? error.message : "Stopped.";
    } finally {
      this.stop = null;
      this.button.textContent = label;
    }
  }

  /** The reason why there is no clip; empty if there is one. */
  private async requestClip({ first, last }: ClipSpan, signal: AbortSignal): Promise<string> {
    const job = await postJson<Job>(this.root, { first_index: first, last_index: last });
    const cancel = (): void => void call(`${API_ROOT}/jobs/${job.id}/cancel/`, { method: "POST" }).catch(() => undefined);
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const until = AbortSignal.any([signal, this.leaving]);
      const ended = await waitForJob(job, (now) => (this.status.textContent = clipProgressText(now)), until);
      return ended.state === "succeeded" ? "" : (ended.error?.message ?? "The clip was stopped.");
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  private get root(): string {
    return `${API_ROOT}/videos/${this.video}/clip/`;
  }

  private url({ first, last }: ClipSpan): string {
    return `${this.root}?first_index=${first}&last_index=${last}`;
  }
}
