import { defineConfig } from "vitest/config";

// The logic of the pages, in Node without a DOM; what needs a page is tested in tests/browser.
export default defineConfig({
  test: { include: ["tests/front/**/*.test.ts"], environment: "node", unstubGlobals: true, restoreMocks: true },
});
