/** Pending changes on this computer: description, reason, and a button to discard each. */

import { element, required } from "../../../dom/elements";
import type { SaveQueue } from "./autosave";
import type { SaveProblem } from "./saved_state";

/** A pending change. */
export interface PendingChange {
  title: string;
  text: string;
  problem: SaveProblem | null;
  discard: () => void;
}

interface Unsaved<K extends string> {
  server: object | null;
  deleted: boolean;
  /** Fields that differ from the server's. */
  changed: K[];
}

/** "New region", "Deletion", "Changed: outline and label". */
export function changeText<K extends string>(noun: string, fieldNames: Record<K, string>, { server, deleted, changed }: Unsaved<K>): string {
  if (!server) return `New ${noun}`;
  if (deleted) return "Deletion";
  if ((changed as string[]).includes("deleted")) return "Brought back";
  return `Changed: ${changed.map((field) => fieldNames[field]).join(" and ") || "possibly saved already"}`;
}

export class PendingChanges {
  private readonly dialog: HTMLDialogElement;

  /** `changes` lists the pending changes of `queue`. */
  constructor(
    root: HTMLElement,
    queue: SaveQueue,
    private readonly changes: () => PendingChange[],
  ) {
    this.dialog = required<HTMLDialogElement>(root, "[data-dialog=pending]");
    const onClick = (selector: string, run: () => void): void =>
      required(this.dialog, selector).addEventListener("click", run);
    onClick("[data-pending-retry]", () => queue.retryNow());
    onClick("[data-pending-discard]", () => changes().forEach(({ discard }) => discard()));
    queue.onStatus(() => {
      if (this.dialog.open) this.show();
    });
  }

  open(): void {
    this.show();
    this.dialog.showModal();
  }

  private show(): void {
    const waiting = this.changes();
    required(this.dialog, "ul").replaceChildren(...waiting.map((change) => this.row(change)));
    if (!waiting.length) this.dialog.close();
  }

  private row({ title, text, problem, discard }: PendingChange): HTMLElement {
    return element(
      "li",
      {},
      element("strong", {}, title),
      element("span", {}, text),
      element("span", { class: problem?.kind === "refused" ? "is-bad" : "muted" }, problem?.message ?? "Waits for its turn."),
      element("button", { type: "button", class: "btn btn--small", click: discard }, "Discard"),
    );
  }
}
