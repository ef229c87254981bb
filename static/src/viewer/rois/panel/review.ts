/** Where the chosen ROI stands in review, who may move it on, and what was said about it. */

import { required } from "../../../dom/elements";
import { commentAdd, roisReview, threadGet, threadRows } from "../../../dom/thread";
import type { ThreadEntry } from "../../../dom/thread";
import type { RoiLayer } from "../shown/layer";
import type { RoiState } from "../saved/state";
import type { RoiStore } from "../saved/store";

const WORDS: Record<string, string> = {
  draft: "Draft",
  submitted: "Submitted",
  accepted: "Accepted",
  rejected: "Rejected",
};
/** From each state, what it can be brought to. */
const STEPS: Record<string, string[]> = {
  draft: ["submitted"],
  submitted: ["draft", "accepted", "rejected"],
  accepted: ["rejected", "submitted"],
  rejected: ["accepted", "submitted"],
};

export class Review {
  private readonly state: HTMLElement;
  private readonly talk: HTMLDetailsElement;
  private readonly text: HTMLTextAreaElement | null;
  private shown: RoiState | null = null;
  private seen = "";
  private thread: ThreadEntry[] = [];

  constructor(
    private readonly host: HTMLElement,
    private readonly store: RoiStore,
    layer: RoiLayer,
    private readonly tell: (text: string) => void,
  ) {
    this.state = required(host, "[data-review-state]");
    this.talk = required<HTMLDetailsElement>(host, "[data-review-talk]");
    this.text = host.querySelector("textarea");
    for (const button of this.buttons()) {
      button.addEventListener("click", () => void this.move(button.dataset.reviewTo ?? ""));
    }
    host.querySelector("[data-review-comment]")?.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.comment();
    });
    this.talk.addEventListener("toggle", () => this.talk.open && void this.load());
    layer.on("select", (state) => this.show(state));
    store.on("changed", (state) => state === this.shown && this.show(state));
  }

  private buttons(): HTMLButtonElement[] {
    return [...this.host.querySelectorAll<HTMLButtonElement>("[data-review-to]")];
  }

  private show(state: RoiState | null): void {
    const isOther = state !== this.shown;
    this.shown = state;
    const server = state?.server ?? null;
    this.host.hidden = !server;
    if (!state || !server) return;
    const now = server.review_state;
    this.state.textContent = WORDS[now] ?? now;
    this.state.dataset.state = now;
    for (const button of this.buttons()) {
      button.hidden = !(STEPS[now] ?? []).includes(button.dataset.reviewTo ?? "");
      button.disabled = !state.isSettled;
    }
    const stamp = `${state.id} ${server.version}`;
    if (isOther) this.showThread([]);
    if (isOther && this.text) this.text.value = "";
    if (isOther || stamp !== this.seen) void this.load();
    this.seen = stamp;
  }

  private async load(): Promise<void> {
    const state = this.shown;
    if (!state) return;
    const entries = await threadGet(state.id).catch(() => null);
    if (entries && this.shown === state) this.showThread(entries);
  }

  private showThread(entries: ThreadEntry[]): void {
    this.thread = entries;
    required(this.host, "[data-review-thread]").replaceChildren(...threadRows(entries));
    required(this.host, "[data-review-count]").textContent = entries.length ? `(${entries.length})` : "";
  }

  private async move(to: string): Promise<void> {
    const state = this.shown;
    if (!state?.server || !state.isSettled) return;
    const words = this.text?.value.trim() ?? "";
    if (to === "rejected" && !words) {
      this.talk.open = true;
      this.text?.focus();
      return this.tell("Say why it is rejected, then reject it.");
    }
    try {
      const [verdict] = await roisReview([{ id: state.id, version: state.server.version }], to, words);
      await this.store.fetchOne(state.id);
      if (verdict && !["done", "unchanged"].includes(verdict.outcome)) return this.tell(verdict.detail);
      if (this.text) this.text.value = "";
    } catch (error) {
      this.tell(error instanceof Error ? error.message : "That did not work.");
    }
  }

  private async comment(): Promise<void> {
    const state = this.shown;
    const words = this.text?.value.trim();
    if (!state || !words || !this.text) return;
    try {
      const added = await commentAdd(state.id, words);
      if (this.shown !== state) return;
      this.text.value = "";
      this.showThread([...this.thread, added]);
      void this.load(); // with what others said meanwhile
    } catch (error) {
      this.tell(error instanceof Error ? error.message : "The comment was not kept.");
    }
  }
}
