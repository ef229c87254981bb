/** A row of the upload page for one file: its name, progress, state and actions. */

import { element } from "../dom/elements";
import { TransferRate, percentText, sizeText, timeText } from "./transfer_rate";

export type RowState = "waiting" | "sending" | "paused" | "checking" | "stored" | "refused" | "gone";

/** State, size and received bytes of one file, for the total progress. */
export interface Part {
  state: RowState;
  size: number;
  arrived: number;
}

interface RowActions {
  pause: () => void;
  resume: () => void;
  remove: () => void;
}

export class UploadRow {
  readonly element: HTMLElement;
  private readonly note = element("span", { class: "num", "data-upload-note": true });
  private readonly bar: HTMLProgressElement;
  private readonly reason = element("p", { class: "field__error", role: "alert", hidden: true });
  private readonly toggleButton: HTMLButtonElement;
  private readonly removeButton: HTMLButtonElement;
  private readonly rate = new TransferRate();
  private now: RowState = "waiting";

  constructor(
    readonly file: File,
    actions: RowActions,
  ) {
    this.bar = element("progress", { class: "progress", "aria-label": file.name });
    this.bar.max = Math.max(file.size, 1);
    this.bar.value = 0;
    this.toggleButton = element("button", { type: "button", class: "btn btn--small", "data-upload-toggle": true }, "Pause");
    this.toggleButton.addEventListener("click", () => (this.now === "sending" || this.now === "waiting" ? actions.pause() : actions.resume()));
    this.removeButton = element(
      "button",
      { type: "button", class: "btn btn--small btn--quiet", "aria-label": `Remove ${file.name}`, "data-upload-remove": true },
      "Remove",
    );
    this.removeButton.addEventListener("click", () => actions.remove());
    const name = element("span", { class: "truncate", title: file.name }, file.name);
    this.element = element(
      "div",
      { class: "upload-row", role: "listitem" },
      element("div", { class: "progress-line" }, name, this.note),
      element("div", { class: "upload-row__bar" }, this.bar, this.toggleButton, this.removeButton),
      this.reason,
    );
    this.show("waiting");
  }

  get state(): RowState {
    return this.now;
  }

  get part(): Part {
    return { state: this.now, size: this.file.size, arrived: this.bar.value };
  }

  /** True if the upload has reached its final state. */
  get isOver(): boolean {
    return ["stored", "refused", "gone"].includes(this.now);
  }

  show(state: RowState, text = ""): void {
    this.now = state;
    this.element.dataset.state = state;
    this.reason.hidden = true;
    const words: Record<RowState, string> = {
      waiting: `${sizeText(this.file.size)} · waiting`,
      sending: "Sending",
      paused: `Paused at ${this.percent()}`,
      checking: "Arrived; being checked",
      stored: "Received",
      refused: "Not stored",
      gone: "Removed",
    };
    this.note.textContent = text || words[state];
    this.toggleButton.textContent = state === "paused" ? "Resume" : state === "refused" ? "Try again" : "Pause";
    this.toggleButton.hidden = state === "checking" || state === "stored";
    this.removeButton.hidden = state === "checking" || state === "stored";
    this.bar.classList.toggle("progress--ok", state === "stored");
    this.bar.classList.toggle("progress--bad", state === "refused");
    if (state === "checking" || state === "stored") this.bar.value = this.bar.max;
    if (state !== "sending") this.rate.reset();
  }

  showSent(bytes: number): void {
    this.bar.value = bytes;
    this.rate.add(performance.now() / 1000, bytes);
    const [rate, left] = [this.rate.rate, this.rate.secondsLeft(this.file.size)];
    const how = rate !== null && left !== null ? ` · ${sizeText(rate)}/s · ${timeText(left)} left` : "";
    this.note.textContent = `${this.percent()} of ${sizeText(this.file.size)}${how}`;
  }

  /** Show that the connection is lost and will be retried automatically. */
  showRetrying(): void {
    this.rate.reset();
    this.note.textContent = `No answer at ${this.percent()}; trying again`;
  }

  /** `isFinal`: the same file would be refused again. */
  showRefused(reason: string, isFinal: boolean, note = ""): void {
    this.show("refused", note);
    this.toggleButton.hidden = isFinal;
    this.reason.textContent = reason;
    this.reason.hidden = false;
  }

  private percent(): string {
    return percentText(this.bar.value, this.bar.max);
  }
}
