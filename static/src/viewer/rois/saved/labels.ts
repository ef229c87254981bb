/** The lab's label set: names, colours, and the number keys 1-9. */

import { labelList } from "./api";
import type { Label } from "../../lib/types";

/** Far from the colours of stained tissue and of mucosa alike. */
export const UNLABELLED_COLOR = "#00c8e8";

export class Labels {
  private readonly byId: Map<string, Label>;

  private constructor(readonly all: Label[]) {
    this.byId = new Map(all.map((label) => [label.id, label]));
  }

  static async load(canvas: string): Promise<Labels> {
    const labels = await labelList(canvas);
    return new Labels([...labels].sort((a, b) => a.position - b.position));
  }

  static none(): Labels {
    return new Labels([]);
  }

  /** The labels that have a number key: the first is on 1. */
  get onKeys(): Label[] {
    return this.all.slice(0, 9);
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
