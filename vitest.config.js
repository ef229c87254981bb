import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// The logic of the pages, in Node without a DOM; what needs a page is tested in tests/browser.
export default defineConfig({
  resolve: { alias: { "@": fileURLToPath(new URL("static/src", import.meta.url)) } },
  test: {
    include: ["tests/front/**/*.test.ts"],
    environment: "node",
    isolate: false, // the modules hold no state that a test would have to fear, and starting is what takes the time
    unstubGlobals: true,
    restoreMocks: true,
  },
});
