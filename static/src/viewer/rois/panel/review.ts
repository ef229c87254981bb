/** Review state, review actions and comments of the selected ROI. */

import { required } from "../../../dom/elements";
import { commentAdd, roisReview, threadGet, threadRows } from "../../../dom/review_thread";
import type { ThreadEntry } from "../../../dom/review_thread";
import type { PanelTabs } from "../../lib/panel_tabs";
import type { RoiLayer } from "../rendering/roi_layer";
import type { RoiState } from "../store/roi_state";
import type { RoiStore } from "../store/roi_store";

const WORDS: Record<string, string> = {
  draft: "Draft",
  submitted: "Submitted",
  accepted: "Accepted",
  rejected: "Rejected",
};
/** The states that can follow each state. */
const STEPS: Record<string, string[]> = {
  draft: ["submitted"],
  submitted: ["draft", "accepted", "rejected"],
  accepted: ["rejected", "submitted"],
  rejected: ["accepted", "submitted"],
};
const COMMENTS = "roi-comments";

export class Review {
  private readonly state: HTMLElement;
  private readonly comments: HTMLElement;
  private readonly count: HTMLElement;
  private readonly text: HTMLTextAreaElement | null;
  private shown: RoiState | null = null;
  private lastStamp = "";
  private thread: ThreadEntry[] = [];

  constructor(
    private readonly host: HTMLElement,
    root: HTMLElement,
    private readonly tabs: PanelTabs,
    private readonly store: RoiStore,
    layer: RoiLayer,
    private readonly showNotice: (text: string) => void,
  ) {
    this.state = required(host, "[data-review-state]");
    this.comments = required(root, `#${COMMENTS}`);
    this.count = required(root, "[data-review-count]");
    this.text = this.comments.querySelector("textarea");
    for (const button of this.buttons()) {
      button.addEventListener("click", () => void this.move(button.dataset.reviewTo ?? ""));
    }
    this.comments.querySelector("form")?.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.comment();
    });
    this.comments.addEventListener("toggle", () => void this.load());
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
    if (isOther || stamp !== this.lastStamp) void this.load();
    this.lastStamp = stamp;
  }

  private async load(): Promise<void> {
    const state = this.shown;
    if (!state?.server) return;
    const entries = await threadGet(state.id).catch(() => null);
    if (entries && this.shown === state) this.showThread(entries);
  }

  private showThread(entries: ThreadEntry[]): void {
    this.thread = entries;
    required(this.comments, "[data-review-thread]").replaceChildren(...threadRows(entries));
    this.count.textContent = entries.length ? `(${entries.length})` : "";
  }

  private async move(to: string): Promise<void> {
    const state = this.shown;
    if (!state?.server || !state.isSettled) return;
    const words = this.text?.value.trim() ?? "";
    if (to === "rejected" && !words) {
      this.tabs.open(COMMENTS);
      this.text?.focus();
      return this.showNotice("Say why it is rejected, then reject it.");
    }
    try {
      const [verdict] = await roisReview([{ id: state.id, version: state.server.version }], to, words);
      await this.store.fetchOne(state.id);
      if (verdict && !["done", "unchanged"].includes(verdict.outcome)) return this.showNotice(verdict.detail);
      if (this.text) this.text.value = "";
    } catch (error) {
      this.showNotice(error instanceof Error ? error.message : "That did not work.");
    }
  }

  private async comment(): Promise<void> {
    const state = this.shown;
    const words = this.text?.value.trim();
    if (!state?.server || !words || !this.text) return;
    try {
      const added = await commentAdd(state.id, words);
      if (this.shown !== state) return;
      this.text.value = "";
      this.showThread([...this.thread, added]);
      void this.load(); // including comments of others
    } catch (error) {
      this.showNotice(error instanceof Error ? error.message : "The comment was not kept.");
    }
  }
}
