/**
 * Transfer of one file: sent in chunks by tus, resumed where it stopped (also after this page, the
 * browser or the server was closed), and polled until it is stored or refused.
 */

import { Upload } from "tus-js-client";
import type { DetailedError } from "tus-js-client";

import type { Schemas } from "../api/schemas";
import { API_ROOT, ApiError, call, csrfToken, getJson } from "../dom/http";
import { FIRST_CHUNK_BYTES, nextChunkBytes } from "./transfer_rate";
import { UploadRow } from "./upload_row";

/** A server that restarts is back within a minute. */
const RETRY_MS = [0, 1000, 3000, 5000, 10_000, 20_000, 30_000, 60_000];
const POLL_MS = 1000;
const SLOW_POLL_MS = 5000;
const FAST_POLLS = 30;
/** The server no longer knows the upload: start again. */
const GONE = [404, 410];

/** The server's state of a received file. */
type UploadStatus = Pick<Schemas["Upload"], "state" | "error">;

/** Reason why a received file was not stored; `isFinal`: the same file would be refused again. */
interface Refusal {
  reason: string;
  isFinal: boolean;
  note?: string;
}

/** Upload target: a case, or a lab for an RO-Crate of a case. */
export type UploadTarget = { case: string } | { lab: string };

export class Transfer {
  readonly row: UploadRow;
  private readonly upload: Upload;
  private isRemoved = false;
  private requestedAtMs = 0;

  constructor(
    readonly file: File,
    readonly target: UploadTarget,
    private readonly onChange: () => void,
    private readonly onProgress: () => void,
  ) {
    this.row = new UploadRow(file, {
      pause: () => void this.pause(),
      resume: () => this.setState("waiting"),
      remove: () => void this.remove(),
    });
    this.upload = new Upload(file, {
      endpoint: `${API_ROOT}/uploads/`,
      chunkSize: FIRST_CHUNK_BYTES,
      retryDelays: RETRY_MS,
      metadata: { filename: file.name, ...target },
      removeFingerprintOnSuccess: true,
      fingerprint: () => Promise.resolve(["tessera", ...Object.values(target), file.name, file.size, file.lastModified].join("/")),
      onBeforeRequest: (request) => {
        this.requestedAtMs = performance.now();
        request.setHeader("X-CSRFToken", csrfToken());
        request.setHeader("Accept", "application/json");
      },
      onShouldRetry: (error, _attempt, _options) => this.shouldRetry(error),
      onProgress: (bytes) => {
        this.row.showSent(bytes);
        this.onProgress();
      },
      onChunkComplete: (bytes) => {
        this.upload.options.chunkSize = nextChunkBytes(bytes, (performance.now() - this.requestedAtMs) / 1000);
      },
      onSuccess: () => void ("lab" in target ? this.import() : this.watch()),
      onError: (error) => this.handleError(error),
    });
  }

  /** Start or resume the transfer. */
  async start(): Promise<void> {
    this.row.show("sending");
    if (!this.upload.url) {
      const [before] = await this.upload.findPreviousUploads();
      if (before) this.upload.resumeFromPreviousUpload(before);
    }
    if (this.row.state === "sending") this.upload.start();
  }

  async pause(): Promise<void> {
    if (this.row.state === "sending") await this.upload.abort();
    this.setState("paused");
  }

  /** Cancel the transfer and delete the received bytes on the server. */
  async remove(): Promise<void> {
    this.isRemoved = true;
    try {
      await this.upload.abort(this.upload.url !== null);
    } catch {
      // the server deletes it after two days
    }
    this.setState("gone");
    this.row.element.remove();
  }

  private shouldRetry(error: DetailedError): boolean {
    const status = error.originalResponse?.getStatus() ?? 0;
    const isPassing = status === 0 || status === 409 || status === 423 || status === 429 || (status >= 500 && status !== 507);
    if (isPassing) this.row.showRetrying();
    return isPassing;
  }

  private handleError(error: Error | DetailedError): void {
    if (this.isRemoved) return;
    const response = "originalResponse" in error ? error.originalResponse : null;
    const status = response?.getStatus() ?? 0;
    if (GONE.includes(status)) this.upload.url = null;
    this.row.showRefused(reasonOf(response?.getBody() ?? "", status), status === 413);
    this.onChange();
  }

  /** Request the import of a received crate; the page shows its progress. */
  private async import(): Promise<void> {
    this.row.show("checking", "Arrived; asking for its import");
    try {
      await call(`${this.upload.url ?? ""}import/`, { method: "POST" });
    } catch (error) {
      this.row.showRefused(error instanceof Error ? error.message : "It could not be imported.", false);
      return this.onChange();
    }
    this.row.element.remove();
    document.body.dispatchEvent(new Event("case-import"));
    this.setState("gone");
  }

  /** Poll the server, which checks the received file. */
  private async watch(): Promise<void> {
    this.row.show("checking");
    this.onChange();
    for (let looks = 0; ; looks += 1) {
      const status = await getJson<UploadStatus>(this.upload.url ?? "").catch((error: unknown) => error as Error);
      const end = transferOutcome(status);
      if (end === "stored") return this.setState(end);
      if (end) {
        if (status instanceof ApiError && GONE.includes(status.status)) this.upload.url = null;
        this.row.showRefused(end.reason, end.isFinal, end.note);
        return this.onChange();
      }
      await new Promise((resolve) => setTimeout(resolve, looks < FAST_POLLS ? POLL_MS : SLOW_POLL_MS));
    }
  }

  private setState(state: "waiting" | "paused" | "stored" | "gone"): void {
    this.row.show(state);
    this.onChange();
  }
}

/** Discard an upload started elsewhere. */
export async function discardUpload(id: string): Promise<void> {
  await call(`${API_ROOT}/uploads/${id}/`, { method: "DELETE", headers: { "Tus-Resumable": "1.0.0" } });
}

/** Return how a received file ended, from its upload resource or the request's error; null while it is processed. */
export function transferOutcome(status: UploadStatus | Error): "stored" | Refusal | null {
  if (status instanceof Error) {
    const isLasting = status instanceof ApiError && !status.isTemporary;
    if (!isLasting) return null; // the server does not answer, but has received the file
    const isGone = GONE.includes(status.status);
    return { reason: isGone ? "It was deleted on the portal. Try again to send it again." : status.message, isFinal: false };
  }
  const reason = status.error?.message ?? "The file was refused.";
  if (status.state === "refused") return { reason, isFinal: true };
  if (status.state === "quarantined") {
    return { reason: `${reason} The file is kept apart; a manager of the lab decides about it.`, isFinal: true, note: "In quarantine" };
  }
  return status.state === "stored" ? "stored" : null;
}

export function reasonOf(body: string, status: number): string {
  try {
    const { detail } = JSON.parse(body) as { detail?: string };
    if (detail) return detail;
  } catch {
    // no problem+json
  }
  if (status === 0) return "The connection broke. What has arrived is kept. Try again to continue.";
  return `The server answered ${status}. Try again.`;
}
