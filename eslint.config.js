import js from "@eslint/js";
import tseslint from "typescript-eslint";

/**
 * The layers of static/src, lowest first: a file imports from its own layer and from those before it.
 * Of the bundles, upload and explore may use app, app may use theme, and viewer none; all use api and dom. In the tests `@` is static/src.
 */
const LAYERS = {
  "static/src": ["api", "dom", "theme", "app", "upload", "explore"],
  "static/src/viewer": ["lib", "map", "rois", "video", "mosaic", "compare", "image_properties", "workbench"],
  "static/src/viewer/rois": ["shapes", "store", "rendering", "drawing", "tools", "panel"],
};
/** What the layers of a folder may not import, besides those after them. */
const OTHERS = {
  "static/src": ["viewer"],
  "static/src/viewer": ["app", "theme", "upload", "explore"],
  "static/src/viewer/rois": ["video", "mosaic", "compare", "image_properties", "workbench", "app", "theme", "upload", "explore"],
};

function layerRule(folder, layer) {
  const place = LAYERS[folder].indexOf(layer);
  const closed = [...LAYERS[folder].slice(place + 1), ...OTHERS[folder], "main"];
  const message = `${folder}/${layer} may import from ${[...new Set(["api", "dom", ...LAYERS[folder].slice(0, place), layer])].join(", ")}.`;
  const patterns = [{ regex: `^(\\.\\.?|@)/(.*/)?(${closed.join("|")})(/|$)`, message }];
  return { files: [`${folder}/${layer}/**`], rules: { "no-restricted-imports": ["error", { patterns }] } };
}

const oneWay = Object.entries(LAYERS).flatMap(([folder, layers]) => layers.map((layer) => layerRule(folder, layer)));

export default tseslint.config(
  { ignores: ["static/dist/", "node_modules/"] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      eqeqeq: "error",
      "no-console": ["error", { allow: ["warn", "error"] }],
      "no-eval": "error",
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Text from people goes in by textContent." },
        { property: "outerHTML", message: "Text from people goes in by textContent." },
      ],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-confusing-void-expression": "off", // `return this.report();` ends a function early
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
    },
  },
  ...oneWay,
);
