/** Merge of two versions of an object by the user's choice for each field. */

export type Side = "mine" | "theirs";
export type Choices<K extends PropertyKey = string> = Partial<Record<K, Side>>;

/** `V`: a version; `K`: the fields that are chosen. */
export class Merge<V extends object, K extends keyof V> {
  constructor(
    private readonly fields: readonly K[],
    private readonly sameField: (field: K, a: V, b: V) => boolean,
    /** Fields that are chosen together with another one. */
    private readonly companions: Partial<Record<K, keyof V>> = {},
  ) {}

  /** The fields in which two versions differ. */
  differingFields(a: V, b: V): K[] {
    return this.fields.filter((field) => !this.sameField(field, a, b));
  }

  isSame(a: V, b: V): boolean {
    return this.differingFields(a, b).length === 0;
  }

  /** Choices without a conflict: fields changed by one side only. The user decides the rest. */
  automaticChoices(base: V | null, mine: V, theirs: V): Choices<K> {
    const choices: Choices<K> = {};
    if (!base) return choices;
    for (const field of this.differingFields(mine, theirs)) {
      if (this.sameField(field, base, mine)) choices[field] = "theirs";
      else if (this.sameField(field, base, theirs)) choices[field] = "mine";
    }
    return choices;
  }

  /** All fields that differ from one side. */
  allOf(side: Side, mine: V, theirs: V): Choices<K> {
    const choices: Choices<K> = {};
    for (const field of this.differingFields(mine, theirs)) choices[field] = side;
    return choices;
  }

  /** The merged version; null while a differing field is not chosen. */
  mergedVersion(mine: V, theirs: V, choices: Choices<K>): V | null {
    const result = { ...theirs };
    for (const field of this.differingFields(mine, theirs)) {
      if (!choices[field]) return null;
      if (choices[field] !== "mine") continue;
      result[field] = mine[field];
      const companion = this.companions[field];
      if (companion) result[companion] = mine[companion];
    }
    return result;
  }
}
