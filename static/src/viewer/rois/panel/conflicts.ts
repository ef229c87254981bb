/** Two people changed one ROI: both outlines are drawn, and the user chooses field by field. */

import { roiRevisions } from "../saved/api";
import { element, required } from "../../../dom/elements";
import type { Labels } from "../saved/labels";
import { allOf, clearChoices, differing, merged } from "../saved/merge";
import type { Choices, MergeField, Side } from "../saved/merge";
import { propertiesText } from "./properties";
import type { MergeShapes } from "../shown/merge_layer";
import type { RoiEdits } from "../saved/edits";
import { versionOf } from "../saved/state";
import type { Version } from "../saved/state";
import type { RoiStore } from "../saved/store";
import type { Conflict } from "../saved/sync";

const NAMES: Record<MergeField, string> = {
  deleted: "Kept or deleted",
  geometry: "Outline",
  track: "Key frames",
  label: "Label",
  name: "Name",
  description: "Description",
  properties: "Properties",
  locked: "Lock",
};

/** Where the outlines are drawn; null takes them off. */
export type DrawMerge = (shown: MergeShapes | null, chosen: Side | null) => void;

export class Conflicts {
  private readonly waiting: Conflict[] = [];
  private readonly dialog: HTMLDialogElement;
  private readonly rows: HTMLElement;
  private readonly save: HTMLButtonElement;
  private choices: Choices = {};

  constructor(
    root: HTMLElement,
    store: RoiStore,
    private readonly edits: RoiEdits,
    private readonly labels: Labels,
    private readonly draw: DrawMerge,
  ) {
    this.dialog = required<HTMLDialogElement>(root, "[data-dialog=conflict]");
    this.rows = required(this.dialog, "[data-merge-rows]");
    this.save = required<HTMLButtonElement>(this.dialog, "[data-merge-save]");
    store.sync.on("conflict", (conflict) => this.add(conflict));
    store.sync.on("settled", (state) => this.settled(state.id));
    for (const button of this.dialog.querySelectorAll<HTMLButtonElement>("[data-keep]")) {
      button.addEventListener("click", () => this.chooseAll(button.dataset.keep as Side));
    }
    required(this.dialog, "[data-merge-later]").addEventListener("click", () => this.close());
    this.save.addEventListener("click", () => this.decide());
  }

  private add(conflict: Conflict): void {
    const known = this.waiting.findIndex(({ state }) => state === conflict.state);
    if (known >= 0) this.waiting.splice(known, 1);
    this.waiting.push(conflict);
    this.open();
  }

  /** Discarded elsewhere on the page: there is nothing to decide any more. */
  private settled(id: string): void {
    const at = this.waiting.findIndex(({ state }) => state.id === id);
    if (at < 0) return;
    this.waiting.splice(at, 1);
    if (at === 0) this.close();
  }

  /** Not modal: the outlines lie beside it, and the map can be moved. */
  open(): void {
    const first = this.waiting[0];
    if (!first || this.dialog.open) return;
    const { state, theirs, base } = first;
    this.choices = clearChoices(base, state.version, versionOf(theirs));
    required(this.dialog, "[data-conflict-who]").textContent = "";
    void this.nameAuthor(first);
    this.show(first);
    this.dialog.show();
  }

  private close(): void {
    this.dialog.close();
    this.draw(null, null);
  }

  private show(conflict: Conflict): void {
    const { state, theirs, base } = conflict;
    const [mine, other] = [state.version, versionOf(theirs)];
    this.rows.replaceChildren(...differing(mine, other).map((field) => this.row(field, base, mine, other)));
    const review = required(this.dialog, "[data-merge-review]");
    const isReviewed = theirs.review_state !== "draft";
    review.hidden = !isReviewed;
    review.textContent = `It was ${theirs.review_state} in review. A new outline or label resets the review.`;
    this.chosen(conflict);
  }

  /** After each choice: what would be saved, and whether all is chosen. */
  private chosen({ state, theirs, base }: Conflict): void {
    const [mine, other] = [state.version, versionOf(theirs)];
    this.save.disabled = merged(mine, other, this.choices) === null;
    const shown: MergeShapes = { mine: mine.geometry, theirs: other.geometry, ...(base ? { base: base.geometry } : {}) };
    this.draw(shown, this.choices.geometry ?? null);
  }

  private row(field: MergeField, base: Version | null, mine: Version, theirs: Version): HTMLElement {
    const cell = (side: Side, version: Version): HTMLElement => {
      const input = element("input", {
        type: "radio",
        name: `merge-${field}`,
        value: side,
        checked: this.choices[field] === side,
        change: () => {
          this.choices[field] = side;
          const first = this.waiting[0];
          if (first) this.chosen(first);
        },
      });
      const line = element("span", { class: `merge-line merge-line--${side}`, "aria-hidden": "true" });
      const text = element("span", {}, this.text(field, version, base, side));
      return element("td", {}, element("label", {}, input, ...(field === "geometry" ? [line] : []), text));
    };
    const before = element("span", { class: "merge-base" }, `before: ${this.before(field, base)}`);
    const head = element("th", { scope: "row" }, NAMES[field], before);
    return element("tr", {}, head, cell("mine", mine), cell("theirs", theirs));
  }

  private before(field: MergeField, base: Version | null): string {
    if (!base) return "not known";
    return field === "geometry" ? "dotted" : this.text(field, base, null, "mine");
  }

  private text(field: MergeField, version: Version, base: Version | null, side: Side): string {
    if (field === "label") return this.labels.nameOf(version.label);
    if (field === "name") return version.name || "No name";
    if (field === "description") return version.description || "None";
    if (field === "properties") return propertiesText(version.properties) || "None";
    if (field === "deleted") return version.deleted ? "Deleted" : "Kept";
    if (field === "locked") return version.locked ? "Locked" : "Not locked";
    if (!base) return side === "mine" ? "This outline" : "Their outline";
    return differing(base, version).includes("geometry") ? "Changed outline" : "As before";
  }

  private async nameAuthor({ theirs }: Conflict): Promise<void> {
    try {
      const revisions = await roiRevisions(theirs.id);
      const last = revisions.find((revision) => revision.version === theirs.version);
      if (!last) return;
      const when = new Date(last.created_at).toLocaleString();
      const who = `Changed by ${last.author ?? "somebody who left"}, ${when}.`;
      required(this.dialog, "[data-conflict-who]").textContent = who;
    } catch {
      // the author is a courtesy: the user can decide without it
    }
  }

  private chooseAll(side: Side): void {
    const first = this.waiting[0];
    if (!first) return;
    this.choices = allOf(side, first.state.version, versionOf(first.theirs));
    this.show(first);
    this.save.focus();
  }

  private decide(): void {
    const conflict = this.waiting[0];
    const result = conflict && merged(conflict.state.version, versionOf(conflict.theirs), this.choices);
    if (!conflict || !result) return;
    this.waiting.shift();
    this.close();
    this.edits.merge(conflict.state, conflict.theirs, result);
    this.open();
  }
}
