// Writes static/src/api/schema.d.ts: TypeScript types of the API's answers, out of its OpenAPI schema.
// `--check` writes nothing and fails where the file is out of date.
//
// The whole schema would be 650 kB of TypeScript. Only the components that static/src names
// (`Schemas["Roi"]`), and those that they refer to, are written; descriptions are left to the schema, so
// that a reworded sentence changes no type.
import { execFileSync } from "node:child_process";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const SOURCE = join(ROOT, "static", "src");
const TARGET = join(SOURCE, "api", "schema.d.ts");
const HEAD = "// Generated from the OpenAPI schema by `npm run types`; do not edit.\n\n";

function openApiSchema() {
  const python = process.env.PYTHON ?? join(ROOT, ".venv", "bin", "python");
  const command = ["manage.py", "spectacular", "--format", "openapi-json"];
  return JSON.parse(execFileSync(python, command, { cwd: ROOT, encoding: "utf8", maxBuffer: 2 ** 27 }));
}

async function componentsNamed() {
  const files = (await readdir(SOURCE, { recursive: true })).filter((name) => /(?<!\.d)\.ts$/.test(name));
  const texts = await Promise.all(files.map((name) => readFile(join(SOURCE, name), "utf8")));
  return texts.flatMap((text) => [...text.matchAll(/\bSchemas\["(\w+)"\]/g)].map(([, name]) => name));
}

/** The named components and all that they refer to, in the order of their names. */
function componentsWithReferences(schemas, names) {
  const found = new Set();
  const open = [...names];
  while (open.length) {
    const name = open.pop();
    if (found.has(name)) continue;
    if (!schemas[name]) throw new Error(`the OpenAPI schema has no component ${name}`);
    found.add(name);
    const references = JSON.stringify(schemas[name]).matchAll(/#\/components\/schemas\/(\w+)/g);
    open.push(...[...references].map(([, reference]) => reference));
  }
  return Object.fromEntries([...found].sort().map((name) => [name, schemas[name]]));
}

const { openapi, info, components } = openApiSchema();
const schemas = componentsWithReferences(components.schemas, await componentsNamed());
const types = await openapiTS({ openapi, info, paths: {}, components: { schemas } }, { arrayLength: true, alphabetize: true });
const text = HEAD + astToString(types, { formatOptions: { removeComments: true } });
if (!process.argv.includes("--check")) {
  await writeFile(TARGET, text);
} else if ((await readFile(TARGET, "utf8").catch(() => "")) !== text) {
  console.error("static/src/api/schema.d.ts differs from the OpenAPI schema: run `npm run types`.");
  process.exitCode = 1;
}
