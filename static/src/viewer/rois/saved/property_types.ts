/** Which properties the lab keeps of its ROIs. */

import { API_ROOT, getJson } from "../../lib/http";

export interface PropertyType {
  key: string;
  kind: "text" | "number" | "choice" | "yes-no";
  choices: string[];
}

/** None where they cannot be read: all properties are free then, and the server checks them. */
export async function propertyTypes(canvas: string): Promise<PropertyType[]> {
  try {
    return (await getJson<{ properties: PropertyType[] }>(`${API_ROOT}/labels/properties/?canvas=${canvas}`)).properties;
  } catch {
    return [];
  }
}
