/** Two people changed one ROI: the user decides, and neither version is lost. */

import { roiRevisions } from "./api";
import { required } from "../../dom/elements";
import type { Labels } from "./labels";
import { sameGeometry } from "../map/pixel_plane";
import type { RoiEdits } from "./edits";
import type { RoiState } from "./state";
import type { RoiStore } from "./store";
import type { Roi } from "../lib/types";

interface Waiting {
  state: RoiState;
  theirs: Roi;
}

export class Conflicts {
  private readonly waiting: Waiting[] = [];
  private readonly dialog: HTMLDialogElement;

  constructor(
    root: HTMLElement,
    store: RoiStore,
    private readonly edits: RoiEdits,
    private readonly labels: Labels,
  ) {
    this.dialog = required<HTMLDialogElement>(root, "[data-dialog=conflict]");
    store.sync.on("conflict", (conflict) => {
      this.waiting.push(conflict);
      this.open();
    });
    for (const button of this.dialog.querySelectorAll<HTMLButtonElement>("[data-keep]")) {
      button.addEventListener("click", () => this.decide(button.dataset.keep === "mine"));
    }
  }

  open(): void {
    const first = this.waiting[0];
    if (!first || this.dialog.open) return;
    required(this.dialog, "[data-conflict-what]").textContent = this.describe(first);
    required(this.dialog, "[data-conflict-who]").textContent = "";
    void this.nameAuthor(first);
    this.dialog.showModal();
  }

  private describe({ state, theirs }: Waiting): string {
    if (theirs.deleted_at) return "It was deleted in the meantime.";
    const differs: string[] = [];
    if (!sameGeometry(theirs.geometry, state.geometry)) differs.push("the outline");
    if (theirs.label !== state.label) differs.push(`the label (theirs: ${this.labels.nameOf(theirs.label)})`);
    if (theirs.name !== state.name) differs.push(`the name (theirs: ${theirs.name || "none"})`);
    if (state.deleted) return "You deleted it here; it was changed in the meantime.";
    return differs.length ? `The two versions differ in ${differs.join(" and ")}.` : "The two versions are alike.";
  }

  private async nameAuthor({ theirs }: Waiting): Promise<void> {
    try {
      const revisions = await roiRevisions(theirs.id);
      const last = revisions.find((revision) => revision.version === theirs.version);
      if (!last) return;
      const when = new Date(last.created_at).toLocaleString();
      const who = `Changed by ${last.author ?? "someone"}, ${when}.`;
      required(this.dialog, "[data-conflict-who]").textContent = who;
    } catch {
      // the author is a courtesy: the user can decide without it
    }
  }

  private decide(keepMine: boolean): void {
    const conflict = this.waiting.shift();
    this.dialog.close();
    if (!conflict) return;
    if (keepMine) this.edits.keepMine(conflict.state, conflict.theirs);
    else this.edits.takeTheirs(conflict.state, conflict.theirs);
    this.open();
  }
}
