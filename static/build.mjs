// Bundles static/src and static/css into static/dist. `--watch` rebuilds on every change.
//
// A folder of static/src with a main.ts becomes a bundle of its own name (static/src/viewer/main.ts
// -> viewer.js, and viewer.css where it imports styles). app and theme are on every page.
import { cp, mkdir, readdir } from "node:fs/promises";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const ROOT = dirname(fileURLToPath(import.meta.url));
const SOURCE = join(ROOT, "src");
const DIST = join(ROOT, "dist");
const TARGET = ["chrome123", "firefox128", "safari17.5"];

const shared = {
  bundle: true,
  minify: true,
  sourcemap: true,
  target: TARGET,
  outdir: DIST,
  logLevel: "warning",
  legalComments: "linked",
  assetNames: "assets/[name]",
  loader: { ".woff2": "file", ".woff": "file", ".svg": "file", ".png": "dataurl" },
};

async function scriptEntries() {
  const entries = {};
  for (const item of await readdir(SOURCE, { withFileTypes: true })) {
    const main = join(SOURCE, item.name, "main.ts");
    if (item.isDirectory() && existsSync(main)) entries[item.name] = main;
  }
  return entries;
}

async function configurations() {
  return [
    { ...shared, entryPoints: await scriptEntries(), format: "iife" },
    { ...shared, entryPoints: { app: join(ROOT, "css", "app.css") } },
  ];
}

await mkdir(DIST, { recursive: true });
await cp(join(ROOT, "img"), join(DIST, "img"), { recursive: true });
if (process.argv.includes("--watch")) {
  for (const options of await configurations()) await (await esbuild.context(options)).watch();
} else {
  await Promise.all((await configurations()).map((options) => esbuild.build(options)));
}
