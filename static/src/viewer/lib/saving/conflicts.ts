/** Conflicts between changes of two people: the user chooses field by field. */

import { dateText } from "../../../dom/dates";
import { element, required } from "../../../dom/elements";
import type { Emitter } from "../events";
import type { Conflict } from "./autosave";
import type { Choices, Merge, Side } from "./merge";
import type { SavedObject, SavedState, VersionOf } from "./saved_state";

/** A version with its author, as the lists of revisions of the API have it. */
interface Revision {
  version: number;
  author: string | null;
  created_at: string;
}

/** Display and resolution of the conflicts of one kind of object. */
export interface ConflictKind<F extends object, S extends SavedObject & F, T extends SavedState<F, S>, K extends keyof VersionOf<F>> {
  noun: string;
  merge: Merge<VersionOf<F>, K>;
  versionOf: (object: S) => VersionOf<F>;
  fieldNames: Record<K, string>;
  text: (field: K, version: VersionOf<F>, base: VersionOf<F> | null, side: Side) => string;
  textBefore: (field: K, base: VersionOf<F>) => string;
  revisions: (id: string) => Promise<Revision[]>;
  save: (state: T, theirs: S, result: VersionOf<F>) => void;
  /** Additional note for the reader; empty if there is none. */
  note?: (theirs: S) => string;
  /** Field drawn on the map, with lines in the colours of the two sides. */
  drawnField?: K;
  /** Draw both versions; null removes them. */
  draw?: (conflict: Conflict<F, S, T> | null, choices: Choices<K>) => void;
}

interface Row {
  field: string;
  name: string;
  before: string;
  isDrawn: boolean;
  texts: Record<Side, string>;
}

/** A conflict of any kind, as the dialog needs it. */
interface OpenConflict {
  id: string;
  version: number;
  noun: string;
  note: string;
  automaticChoices: Choices;
  allOf: (side: Side) => Choices;
  rows: () => Row[];
  isDecided: (choices: Choices) => boolean;
  draw: (choices: Choices | null) => void;
  save: (choices: Choices) => void;
  revisions: () => Promise<Revision[]>;
}

interface ConflictEvents<C, T> {
  conflict: C;
  settled: T;
}

export class Conflicts {
  private readonly waiting: OpenConflict[] = [];
  private readonly dialog: HTMLDialogElement;
  private readonly rows: HTMLElement;
  private readonly saveButton: HTMLButtonElement;
  private choices: Choices = {};

  constructor(root: HTMLElement) {
    this.dialog = required<HTMLDialogElement>(root, "[data-dialog=conflict]");
    this.rows = required(this.dialog, "[data-merge-rows]");
    this.saveButton = required<HTMLButtonElement>(this.dialog, "[data-merge-save]");
    for (const button of this.dialog.querySelectorAll<HTMLButtonElement>("[data-keep]")) {
      button.addEventListener("click", () => this.chooseAll(button.dataset.keep as Side));
    }
    required(this.dialog, "[data-merge-later]").addEventListener("click", () => this.close());
    this.saveButton.addEventListener("click", () => this.decide());
  }

  /** Show the conflicts of a queue. */
  listen<F extends object, S extends SavedObject & F, T extends SavedState<F, S>, K extends keyof VersionOf<F>>(
    sync: Pick<Emitter<ConflictEvents<Conflict<F, S, T>, T>>, "on">,
    kind: ConflictKind<F, S, T, K>,
  ): void {
    sync.on("conflict", (conflict) => this.add(openConflict(conflict, kind)));
    sync.on("settled", ({ id }) => this.closeSettled(id));
  }

  private add(conflict: OpenConflict): void {
    const known = this.waiting.findIndex(({ id }) => id === conflict.id);
    if (known >= 0) this.waiting.splice(known, 1);
    this.waiting.push(conflict);
    this.open();
  }

  /** Close a conflict whose object was discarded elsewhere on the page. */
  private closeSettled(id: string): void {
    const at = this.waiting.findIndex((conflict) => conflict.id === id);
    if (at < 0) return;
    const [gone] = this.waiting.splice(at, 1);
    if (at === 0) this.close(gone);
  }

  /** Open the dialog, not modal: the map stays usable. */
  open(): void {
    const first = this.waiting[0];
    if (!first || this.dialog.open) return;
    this.choices = first.automaticChoices;
    required(this.dialog, "#conflict-title").textContent = `Someone else changed this ${first.noun}`;
    required(this.dialog, "[data-conflict-who]").textContent = "";
    void this.nameAuthor(first);
    this.show(first);
    this.dialog.show();
  }

  private close(conflict = this.waiting[0]): void {
    this.dialog.close();
    conflict?.draw(null);
  }

  private show(conflict: OpenConflict): void {
    this.rows.replaceChildren(...conflict.rows().map((row) => this.row(row)));
    const note = required(this.dialog, "[data-merge-review]");
    note.hidden = !conflict.note;
    note.textContent = conflict.note;
    this.handleChoice(conflict);
  }

  /** Update the dialog after a choice: the result, and whether all fields are chosen. */
  private handleChoice(conflict: OpenConflict): void {
    this.saveButton.disabled = !conflict.isDecided(this.choices);
    conflict.draw(this.choices);
  }

  private row({ field, name, before, isDrawn, texts }: Row): HTMLElement {
    const cell = (side: Side): HTMLElement => {
      const input = element("input", {
        type: "radio",
        name: `merge-${field}`,
        value: side,
        checked: this.choices[field] === side,
        change: () => {
          this.choices[field] = side;
          const first = this.waiting[0];
          if (first) this.handleChoice(first);
        },
      });
      const line = element("span", { class: `merge-line merge-line--${side}`, "aria-hidden": "true" });
      return element("td", {}, element("label", {}, input, ...(isDrawn ? [line] : []), element("span", {}, texts[side])));
    };
    const head = element("th", { scope: "row" }, name, element("span", { class: "merge-base" }, `before: ${before}`));
    return element("tr", {}, head, cell("mine"), cell("theirs"));
  }

  private async nameAuthor({ version, revisions }: OpenConflict): Promise<void> {
    try {
      const last = (await revisions()).find((revision) => revision.version === version);
      if (!last) return;
            const who = `Changed by ${last.author ?? "somebody who left"}, ${dateText(last.created_at)}.`;
      required(this.dialog, "[data-conflict-who]").textContent = who;
    } catch {
      // the author is optional: the user can decide without it
    }
  }

  private chooseAll(side: Side): void {
    const first = this.waiting[0];
    if (!first) return;
    this.choices = first.allOf(side);
    this.show(first);
    this.saveButton.focus();
  }

  private decide(): void {
    const conflict = this.waiting[0];
    if (!conflict?.isDecided(this.choices)) return;
    this.close();
    this.waiting.shift();
    conflict.save(this.choices);
    this.open();
  }
}

/** Adapts a conflict for the dialog: its fields as rows of text, drawn and saved as its kind of object is. */
function openConflict<F extends object, S extends SavedObject & F, T extends SavedState<F, S>, K extends keyof VersionOf<F>>(
  conflict: Conflict<F, S, T>,
  kind: ConflictKind<F, S, T, K>,
): OpenConflict {
  const { state, theirs, base } = conflict;
  const { merge } = kind;
  const other = kind.versionOf(theirs);
  const typedChoices = (choices: Choices): Choices<K> => choices as Choices<K>;
  return {
    ...{ id: state.id, version: theirs.version, noun: kind.noun, note: kind.note?.(theirs) ?? "" },
    automaticChoices: merge.automaticChoices(base, state.version, other),
    allOf: (side) => merge.allOf(side, state.version, other),
    rows: () => {
      const mine = state.version;
      return merge.differingFields(mine, other).map((field) => ({
        field: String(field),
        name: kind.fieldNames[field],
        before: base ? kind.textBefore(field, base) : "not known",
        isDrawn: field === kind.drawnField,
        texts: { mine: kind.text(field, mine, base, "mine"), theirs: kind.text(field, other, base, "theirs") },
      }));
    },
    isDecided: (choices) => merge.mergedVersion(state.version, other, typedChoices(choices)) !== null,
    draw: (choices) => kind.draw?.(choices && conflict, typedChoices(choices ?? {})),
    save: (choices) => {
      const result = merge.mergedVersion(state.version, other, typedChoices(choices));
      if (result) kind.save(state, theirs, result);
    },
    revisions: () => kind.revisions(state.id),
  };
}
