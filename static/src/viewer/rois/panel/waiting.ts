/** The changes that wait on this computer: what each is, why it waits, and a way to discard it. */

import { element, required } from "../../../dom/elements";
import type { RoiEdits } from "../saved/edits";
import type { Labels } from "../saved/labels";
import { differing } from "../saved/merge";
import { versionOf } from "../saved/state";
import type { RoiState } from "../saved/state";
import type { RoiSync } from "../saved/sync";

const WORDS = { deleted: "deletion", geometry: "outline", track: "key frames", label: "label", name: "name", locked: "lock", description: "description", properties: "properties" };

/** "New ROI", "Deletion", "Changed: outline and label". */
export function changeText(state: RoiState): string {
  if (!state.server) return "New ROI";
  if (state.deleted) return "Deletion";
  const fields = differing(state.version, versionOf(state.server)).map((field) => WORDS[field]);
  if (fields.includes("deletion")) return "Brought back";
  const text = fields.join(" and ") || "possibly saved already";
  return `Changed: ${text}`;
}

export class WaitingChanges {
  private readonly dialog: HTMLDialogElement;

  constructor(
    root: HTMLElement,
    private readonly sync: RoiSync,
    private readonly edits: RoiEdits,
    private readonly labels: Labels,
  ) {
    this.dialog = required<HTMLDialogElement>(root, "[data-dialog=waiting]");
    const on = (what: string, run: () => void): void =>
      required(this.dialog, what).addEventListener("click", run);
    on("[data-waiting-retry]", () => sync.retryNow());
    on("[data-waiting-discard]", () => sync.waiting.forEach((state) => edits.discard(state)));
    sync.on("status", () => {
      if (this.dialog.open) this.show();
    });
  }

  open(): void {
    this.show();
    this.dialog.showModal();
  }

  private show(): void {
    const { waiting } = this.sync;
    required(this.dialog, "ul").replaceChildren(...waiting.map((state) => this.row(state)));
    if (!waiting.length) this.dialog.close();
  }

  private row(state: RoiState): HTMLElement {
    const title = state.name || (state.label ? this.labels.nameOf(state.label) : "Unnamed ROI");
    const why = state.problem?.message ?? "Waits for its turn.";
    return element(
      "li",
      {},
      element("strong", {}, title),
      element("span", {}, changeText(state)),
      element("span", { class: state.problem?.kind === "refused" ? "is-bad" : "muted" }, why),
      element(
        "button",
        { type: "button", class: "btn btn--small", click: () => this.edits.discard(state) },
        "Discard",
      ),
    );
  }
}
