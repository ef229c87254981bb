import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// The logic of the pages, in Node without a DOM; what needs a page is tested in tests/browser.
export default defineConfig({
  resolve: { alias: { "@": fileURLToPath(new URL("static/src", import.meta.url)) } },
  test: {
    include: ["tests/front/**/*.test.ts"],
    environment: "node",
    isolate: false, // the modules keep no state that one test could leave to another, and starting takes most of the time
    unstubGlobals: true,
    restoreMocks: true,
    testTimeout: 30_000, // two checks run at once on two cores
  },
});
