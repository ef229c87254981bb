import { expect, it } from "vitest";

import { randomUuid } from "@/viewer/lib/uuid";

it("is of version 4 and of the variant of RFC 9562, and another each time", () => {
  const made = Array.from({ length: 200 }, randomUuid);
  for (const uuid of made) expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(new Set(made).size).toBe(200);
});
