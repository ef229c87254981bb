/** The lab's label set: names, colours, and the number keys 1-9. */

import { labelList } from "./api";
import type { Label } from "../../lib/types";

/** Far from the colours of stained tissue and of mucosa alike. */
export const UNLABELLED_COLOR = "#00c8e8";

/** By position, and each followed by those below it. */
function ordered(labels: Label[]): Label[] {
  const known = new Set(labels.map(({ id }) => id));
  const sorted = [...labels].sort((a, b) => a.position - b.position);
  const below = (parent: string | null): Label[] =>
    sorted
      .filter((label) => (label.parent && known.has(label.parent) ? label.parent : null) === parent)
      .flatMap((label) => [label, ...below(label.id)]);
  return below(null);
}

export class Labels {
  private readonly byId: Map<string, Label>;

  private readonly depths = new Map<string, number>();

  /** `all`: what a new ROI can carry, each label followed by those below it. */
  private constructor(
    every: Label[],
    readonly all: Label[] = ordered(every.filter(({ retired }) => !retired)),
  ) {
    this.byId = new Map(every.map((label) => [label.id, label]));
    for (const { id, parent } of all) this.depths.set(id, parent ? (this.depths.get(parent) ?? -1) + 1 : 0);
  }

  static async load(canvas: string): Promise<Labels> {
    return new Labels(await labelList(canvas));
  }

  static none(): Labels {
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
    return this.get(id)?.color ?? UNLABELLED_COLOR;
  }
}
