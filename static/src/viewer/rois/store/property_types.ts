/** Which properties the lab keeps of its ROIs. */

import type { Schemas } from "../../../api/schemas";
import { API_ROOT, getJson } from "../../lib/http";

export type PropertyType = Schemas["PropertyType"];

/** The type of a property that the lab has no type for. */
export const freeText = (key: string): PropertyType => ({ ...{ key, kind: "text", choices: [] }, ...{ unit: "", name: "", retired: false } });

export const titleOf = (type: PropertyType): string => (type.name || type.key) + (type.unit ? ` (${type.unit})` : "");

/** Property types of the lab; empty if they cannot be loaded, then only the server checks values. */
export async function propertyTypes(canvas: string): Promise<PropertyType[]> {
  try {
    return (await getJson<Schemas["PropertyTypes"]>(`${API_ROOT}/labels/properties/?canvas=${canvas}`)).properties;
  } catch {
    return [];
  }
}
