/** Merge of two versions of an ROI. */

import { Merge } from "../../lib/saving/merge";
import { sameGeometry } from "../../map/pixel_plane";
import { sameProperties, sameTrack } from "./roi_state";
import type { Version } from "./roi_state";

/** The outline brings its shape along. */
export type MergeField = Exclude<keyof Version, "shape">;

const FIELDS: MergeField[] = ["deleted", "geometry", "track", "label", "name", "description", "properties", "locked"];

function sameField(field: MergeField, a: Version, b: Version): boolean {
  if (field === "track") return sameTrack(a.track, b.track);
  if (field === "properties") return sameProperties(a.properties, b.properties);
  return field === "geometry" ? sameGeometry(a.geometry, b.geometry) && a.shape === b.shape : a[field] === b[field];
}

export const ROI_MERGE = new Merge<Version, MergeField>(FIELDS, sameField, { geometry: "shape" });
