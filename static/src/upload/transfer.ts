/**
 * One file on its way: sent in pieces by tus, continued where it stopped (also after this page, the
 * browser or the server was closed), and watched until it is stored or refused.
 */

import { Upload } from "tus-js-client";
import type { DetailedError } from "tus-js-client";

import { API_ROOT, ApiError, call, csrfToken, getJson } from "../dom/http";
import { FIRST_PIECE_BYTES, nextPiece } from "./pace";
import { Row } from "./row";

/** A server that restarts is back within a minute. */
const RETRY_MS = [0, 1000, 3000, 5000, 10_000, 20_000, 30_000, 60_000];
const LOOK_EVERY_MS = 1000;
const LOOK_SELDOM_MS = 5000;
const SELDOM_AFTER = 30;
/** The server no longer knows the transfer: it is begun again. */
const GONE = [404, 410];

interface Seen {
  state: "receiving" | "checking" | "stored" | "refused" | "quarantined";
  error: { message: string } | null;
}

/** Why a file that arrived was not stored; `isFinal`: the same file would be refused again. */
interface Refusal {
  reason: string;
  isFinal: boolean;
  note?: string;
}

/** Where a file goes: into a case, or, as the crate of a whole case, into a lab. */
export type Goal = { case: string } | { lab: string };

export class Transfer {
  readonly row: Row;
  private readonly upload: Upload;
  private isRemoved = false;
  private asked = 0; // when the last request began, in milliseconds

  constructor(
    readonly file: File,
    readonly goal: Goal,
    private readonly changed: () => void,
    private readonly moved: () => void,
  ) {
    this.row = new Row(file, {
      pause: () => void this.pause(),
      goOn: () => this.changedTo("waiting"),
      remove: () => void this.remove(),
    });
    this.upload = new Upload(file, {
      endpoint: `${API_ROOT}/uploads/`,
      chunkSize: FIRST_PIECE_BYTES,
      retryDelays: RETRY_MS,
      metadata: { filename: file.name, ...goal },
      removeFingerprintOnSuccess: true,
      fingerprint: () => Promise.resolve(["tessera", ...Object.values(goal), file.name, file.size, file.lastModified].join("/")),
      onBeforeRequest: (request) => {
        this.asked = performance.now();
        request.setHeader("X-CSRFToken", csrfToken());
        request.setHeader("Accept", "application/json");
      },
      onShouldRetry: (error, _attempt, _options) => this.shouldRetry(error),
      onProgress: (bytes) => {
        this.row.sent(bytes);
        this.moved();
      },
      onChunkComplete: (bytes) => {
        this.upload.options.chunkSize = nextPiece(bytes, (performance.now() - this.asked) / 1000);
      },
      onSuccess: () => void ("lab" in goal ? this.import() : this.watch()),
      onError: (error) => this.failed(error),
    });
  }

  /** Send it, or what is left of it. */
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
    this.changedTo("paused");
  }

  /** Give it up; what had arrived is deleted on the server. */
  async remove(): Promise<void> {
    this.isRemoved = true;
    try {
      await this.upload.abort(this.upload.url !== null);
    } catch {
      // the server keeps it for two days; nobody waits for it
    }
    this.changedTo("gone");
    this.row.element.remove();
  }

  private shouldRetry(error: DetailedError): boolean {
    const status = error.originalResponse?.getStatus() ?? 0;
    const isPassing = status === 0 || status === 409 || status === 423 || status === 429 || (status >= 500 && status !== 507);
    if (isPassing) this.row.waits();
    return isPassing;
  }

  private failed(error: Error | DetailedError): void {
    if (this.isRemoved) return;
    const response = "originalResponse" in error ? error.originalResponse : null;
    const status = response?.getStatus() ?? 0;
    if (GONE.includes(status)) this.upload.url = null;
    this.row.refused(reasonOf(response?.getBody() ?? "", status), status === 413);
    this.changed();
  }

  /** All bytes of a crate have arrived: ask for its import; the page shows what becomes of it. */
  private async import(): Promise<void> {
    this.row.show("checking", "Arrived; asking for its import");
    try {
      await call(`${this.upload.url ?? ""}import/`, { method: "POST" });
    } catch (error) {
      this.row.refused(error instanceof Error ? error.message : "It could not be imported.", false);
      return this.changed();
    }
    this.row.element.remove();
    document.body.dispatchEvent(new Event("case-import"));
    this.changedTo("gone");
  }

  /** All bytes have arrived: the server checks them. */
  private async watch(): Promise<void> {
    this.row.show("checking");
    this.changed();
    for (let looks = 0; ; looks += 1) {
      const seen = await getJson<Seen>(this.upload.url ?? "").catch((error: unknown) => error as Error);
      const end = endOf(seen);
      if (end === "stored") return this.changedTo(end);
      if (end) {
        if (seen instanceof ApiError && GONE.includes(seen.status)) this.upload.url = null;
        this.row.refused(end.reason, end.isFinal, end.note);
        return this.changed();
      }
      await new Promise((resolve) => setTimeout(resolve, looks < SELDOM_AFTER ? LOOK_EVERY_MS : LOOK_SELDOM_MS));
    }
  }

  private changedTo(state: "waiting" | "paused" | "stored" | "gone"): void {
    this.row.show(state);
    this.changed();
  }
}

/** Give up a transfer that was begun from elsewhere. */
export async function giveUp(id: string): Promise<void> {
  await call(`${API_ROOT}/uploads/${id}/`, { method: "DELETE", headers: { "Tus-Resumable": "1.0.0" } });
}

/** What became of a file that has arrived, by an answer about it; null while that is not known. */
export function endOf(seen: Seen | Error): "stored" | Refusal | null {
  if (seen instanceof Error) {
    const isLasting = seen instanceof ApiError && !seen.isTemporary;
    if (!isLasting) return null; // no answer for the moment; the file has arrived all the same
    const isGone = GONE.includes(seen.status);
    return { reason: isGone ? "It was deleted on the portal. Try again to send it anew." : seen.message, isFinal: false };
  }
  const why = seen.error?.message ?? "The file was refused.";
  if (seen.state === "refused") return { reason: why, isFinal: true };
  if (seen.state === "quarantined") {
    return { reason: `${why} The file is kept apart; a manager of the lab decides about it.`, isFinal: true, note: "In quarantine" };
  }
  return seen.state === "stored" ? "stored" : null;
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
