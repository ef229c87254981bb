/** The chosen kind and grid of the tool for fixed sizes; the last choice is kept in the browser. */

export interface FixedSizeChoice {
  kind: "circle" | "square" | "grid";
  /** Grid: number of fields, area of each, space between them. */
  count: number;
  areaMm2: number;
  spacingUm: number;
  /** Only fields inside the selected region; only fields with tissue. */
  insideRegion: boolean;
  onTissue: boolean;
}

export const MAX_FIELDS = 100;
export const MIN_FIELD_MM2 = 0.0001;
export const MAX_FIELD_MM2 = 25;
export const MAX_SPACING_UM = 10_000;

/** Ten high-power fields with a sum of 2.37 mm². */
export const FIRST_CHOICE: FixedSizeChoice = { kind: "circle", count: 10, areaMm2: 0.237, spacingUm: 0, insideRegion: true, onTissue: false };

const KEY = "tessera-fixed-size";

const isBetween = (value: unknown, min: number, max: number): value is number => typeof value === "number" && value >= min && value <= max;

/** Whether a grid can be placed with these numbers. */
export function isValid({ kind, count, areaMm2, spacingUm }: Partial<FixedSizeChoice>): boolean {
  const isKind = kind === "circle" || kind === "square" || kind === "grid";
  const isCount = isBetween(count, 1, MAX_FIELDS) && Number.isInteger(count);
  return isKind && isCount && isBetween(areaMm2, MIN_FIELD_MM2, MAX_FIELD_MM2) && isBetween(spacingUm, 0, MAX_SPACING_UM);
}

/** Parse a stored choice; the default if it cannot be read. */
export function parseChoice(text: string | null): FixedSizeChoice {
  try {
    const read = { ...FIRST_CHOICE, ...(JSON.parse(text ?? "{}") as Partial<FixedSizeChoice>) };
    return isValid(read) ? read : FIRST_CHOICE;
  } catch {
    return FIRST_CHOICE;
  }
}

export function loadChoice(): FixedSizeChoice {
  try {
    return parseChoice(localStorage.getItem(KEY));
  } catch {
    return FIRST_CHOICE; // the browser stores nothing
  }
}

export function storeChoice(choice: FixedSizeChoice): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(choice));
  } catch {
    // the browser stores nothing: it holds while the page is open
  }
}
