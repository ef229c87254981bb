/** Two versions of an ROI brought together, field by field, by what its user chooses. */

import { sameGeometry } from "../../map/pixel_plane";
import { sameProperties, sameTrack } from "./state";
import type { Version } from "./state";

/** The outline brings its shape along. */
export type MergeField = Exclude<keyof Version, "shape">;
export type Side = "mine" | "theirs";
export type Choices = Partial<Record<MergeField, Side>>;

const FIELDS: MergeField[] = ["deleted", "geometry", "track", "label", "name", "description", "properties", "locked"];

function sameField(field: MergeField, a: Version, b: Version): boolean {
  if (field === "track") return sameTrack(a.track, b.track);
  if (field === "properties") return sameProperties(a.properties, b.properties);
  return field === "geometry" ? sameGeometry(a.geometry, b.geometry) && a.shape === b.shape : a[field] === b[field];
}

/** The fields in which two versions differ. */
export function differing(a: Version, b: Version): MergeField[] {
  return FIELDS.filter((field) => !sameField(field, a, b));
}

export function sameVersion(a: Version, b: Version): boolean {
  return differing(a, b).length === 0;
}

/** What is clear already: a field that only one side changed is taken from it. What both changed is left to the user. */
export function clearChoices(base: Version | null, mine: Version, theirs: Version): Choices {
  const choices: Choices = {};
  if (!base) return choices;
  for (const field of differing(mine, theirs)) {
    if (sameField(field, base, mine)) choices[field] = "theirs";
    else if (sameField(field, base, theirs)) choices[field] = "mine";
  }
  return choices;
}

/** All fields that differ from one side. */
export function allOf(side: Side, mine: Version, theirs: Version): Choices {
  return Object.fromEntries(differing(mine, theirs).map((field) => [field, side]));
}

/** Null while a field that differs is not chosen. */
export function merged(mine: Version, theirs: Version, choices: Choices): Version | null {
  const result = { ...theirs };
  for (const field of differing(mine, theirs)) {
    if (!choices[field]) return null;
    if (choices[field] !== "mine") continue;
    Object.assign(result, { [field]: mine[field] });
    if (field === "geometry") result.shape = mine.shape;
  }
  return result;
}
