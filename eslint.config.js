import js from "@eslint/js";
import tseslint from "typescript-eslint";

/**
 * The rooms of static/src, lowest first: a file imports from its own room and from those before it.
 * Of the bundles, upload and browse may use app, app may use theme, and viewer none; all use dom. In the tests `@` is static/src.
 */
const ROOMS = {
  "static/src": ["dom", "theme", "app", "upload", "browse"],
  "static/src/viewer": ["lib", "map", "rois", "video", "mosaic", "beside", "about", "page"],
  "static/src/viewer/rois": ["shapes", "saved", "shown", "sketch", "tools", "panel"],
};
/** What the rooms of a folder may not import, besides those after them. */
const OTHERS = {
  "static/src": ["viewer"],
  "static/src/viewer": ["app", "theme", "upload", "browse"],
  "static/src/viewer/rois": ["video", "mosaic", "beside", "about", "page", "app", "theme", "upload", "browse"],
};

function roomRule(folder, room) {
  const place = ROOMS[folder].indexOf(room);
  const closed = [...ROOMS[folder].slice(place + 1), ...OTHERS[folder], "main"];
  const message = `${folder}/${room} may import from ${[...new Set(["dom", ...ROOMS[folder].slice(0, place), room])].join(", ")}.`;
  const patterns = [{ regex: `^(\\.\\.?|@)/(.*/)?(${closed.join("|")})(/|$)`, message }];
  return { files: [`${folder}/${room}/**`], rules: { "no-restricted-imports": ["error", { patterns }] } };
}

const oneWay = Object.entries(ROOMS).flatMap(([folder, rooms]) => rooms.map((room) => roomRule(folder, room)));

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
