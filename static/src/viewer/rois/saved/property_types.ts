/** Which properties the lab keeps of its ROIs. */

import { API_ROOT, getJson } from "../../lib/http";

export interface PropertyType {
  key: string;
  kind: "text" | "number" | "choice" | "yes-no";
  choices: string[];
  /** Of a number. */
  unit?: string;
  /** As people see it; empty: as the key. */
  name?: string;
  /** Shown where an ROI has it. */
  retired?: boolean;
}

export const titleOf = (type: PropertyType): string => (type.name || type.key) + (type.unit ? ` (${type.unit})` : "");

/** None where they cannot be read: all properties are free then, and the server checks them. */
export async function propertyTypes(canvas: string): Promise<PropertyType[]> {
  try {
    return (await getJson<{ properties: PropertyType[] }>(`${API_ROOT}/labels/properties/?canvas=${canvas}`)).properties;
  } catch {
    return [];
  }
}
