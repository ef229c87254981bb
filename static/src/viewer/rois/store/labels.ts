/** The lab's label set: names, colours, and the number keys 1-9. */

import { Emitter } from "../../lib/events";
import { labelList } from "./api";
import type { Label } from "../../lib/types";
import { NO_CHANGES } from "./label_display";
import type { LabelDisplay } from "./label_display";

/** Far from the colours of stained tissue and of mucosa alike. */
export const UNLABELLED_COLOR = "#00c8e8";

/** Labels by position, each followed by its children. */
function ordered(labels: Label[]): Label[] {
  const known = new Set(labels.map(({ id }) => id));
  const sorted = [...labels].sort((a, b) => a.position - b.position);
  const labelsBelow = (parent: string | null): Label[] =>
    sorted
      .filter((label) => (label.parent && known.has(label.parent) ? label.parent : null) === parent)
      .flatMap((label) => [label, ...labelsBelow(label.id)]);
  return labelsBelow(null);
}

/** Filter value of ROIs without a label, in place of the id of a label. */
export const UNLABELLED = "none";

interface LabelEvents {
  /** The labels that a new ROI can carry have changed. */
  list: null;
  /** Colours or visibility on this screen have changed. */
  display: LabelDisplay;
}

export class Labels extends Emitter<LabelEvents> {
  private readonly byId: Map<string, Label>;
  private readonly depths = new Map<string, number>();
  /** The labels a new ROI can carry, each followed by those below it. */
  all: Label[] = [];
  private changes: LabelDisplay = NO_CHANGES;

  private constructor(every: Label[]) {
    super();
    this.byId = new Map(every.map((label) => [label.id, label]));
    this.order();
  }

  private order(): void {
    this.all = ordered([...this.byId.values()].filter(({ retired }) => !retired));
    for (const { id, parent } of this.all) this.depths.set(id, parent ? (this.depths.get(parent) ?? -1) + 1 : 0);
  }

  /** Take in a label that was just made. */
  add(label: Label): void {
    this.byId.set(label.id, label);
    this.order();
    this.emit("list", null);
  }

  /** Differences from the colours of the lab on this screen, and hidden labels. */
  get display(): LabelDisplay {
    return this.changes;
  }

  setDisplay(part: Partial<LabelDisplay>): void {
    this.changes = { ...this.changes, ...part };
    this.emit("display", this.changes);
  }

  isHidden(id: string | null): boolean {
    return this.changes.hidden.includes(id ?? UNLABELLED);
  }

  /** Show or hide the ROIs of a label; null: those without one. */
  setHidden(id: string | null, isHidden: boolean): void {
    if (this.isHidden(id) === isHidden) return;
    const others = this.changes.hidden.filter((hidden) => hidden !== (id ?? UNLABELLED));
    this.setDisplay({ hidden: isHidden ? [...others, id ?? UNLABELLED] : others });
  }

  /** Show a label in this colour on this screen; null: in that of the lab. */
  setColor(id: string, color: string | null): void {
    const others = Object.entries(this.changes.colors).filter(([one]) => one !== id);
    this.setDisplay({ colors: Object.fromEntries(color === null ? others : [...others, [id, color]]) });
  }

  static async load(canvas: string): Promise<Labels> {
    return new Labels(await labelList(canvas));
  }

  static empty(): Labels {
    return new Labels([]);
  }

  /** The labels that have a number key, by key. */
  get onKeys(): Label[] {
    return this.all.filter(({ key }) => key).sort((a, b) => a.key.localeCompare(b.key));
  }

  /** The name, indented by its depth in the tree. */
  indented({ id, name }: Label): string {
    return "\u2003".repeat(this.depths.get(id) ?? 0) + name;
  }

  get(id: string | null): Label | null {
    return (id && this.byId.get(id)) || null;
  }

  nameOf(id: string | null): string {
    return this.get(id)?.name ?? "No label";
  }

  colorOf(id: string | null): string {
    const label = this.get(id);
    return label ? (this.changes.colors[label.id] ?? label.color) : UNLABELLED_COLOR;
  }
}
