/** Components of the REST API's OpenAPI schema, as types. */

import type { components } from "./schema";

/** Request type: a schema without `readonly`, which marks fields of responses. */
type Mutable<T> = T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> } : T;

export type Schemas = Mutable<components["schemas"]>;
