/** The import rules of the scripts: each catches a breach planted in a file of its layer. */
import { ESLint } from "eslint";
import tseslint from "typescript-eslint";
import { beforeAll, describe, expect, it } from "vitest";

let eslint: ESLint;

/** What the import rules say of a file of this layer that imports `from`. */
async function objections(file: string, from: string): Promise<string[]> {
  const [result] = await eslint.lintText(`import ${JSON.stringify(from)};\n`, { filePath: file });
  return (result?.messages ?? []).map(({ ruleId, message }) => `${ruleId ?? "fatal"}: ${message}`);
}

beforeAll(async () => {
  eslint = new ESLint({ overrideConfig: tseslint.configs.disableTypeChecked }); // no program to build: seconds less
  await objections("static/src/app/main.ts", "./confirm");
}, 60_000);

describe("a breach is refused", () => {
  const breaches = [
    ["static/src/viewer/lib/units.ts", "../map/pixel_plane"],
    ["static/src/viewer/map/pixel_plane.ts", "../rois/store/roi_state"],
    ["static/src/viewer/rois/store/roi_state.ts", "../../video/frame_table"],
    ["static/src/viewer/rois/store/roi_state.ts", "../tools/tools"],
    ["static/src/viewer/video/frame_table.ts", "../mosaic/api"],
    ["static/src/viewer/mosaic/api.ts", "../workbench/key_bindings"],
    ["static/src/viewer/mosaic/api.ts", "../compare/view_sync"],
    ["static/src/viewer/mosaic/api.ts", "../main"],
    ["static/src/viewer/mosaic/api.ts", "../../viewer/workbench/key_bindings"],
    ["static/src/viewer/mosaic/api.ts", "@/viewer/workbench/key_bindings"],
    ["static/src/viewer/workbench/key_bindings.ts", "../../app/toasts"],
    ["static/src/app/toasts.ts", "../viewer/lib/stage_notice"],
    ["static/src/theme/theme.ts", "../app/toasts"],
    ["static/src/app/toasts.ts", "../upload/transfer_rate"],
    ["static/src/dom/elements.ts", "../viewer/lib/events"],
  ] as const;

  it.each(breaches)("%s does not import %s", async (file, from) => {
    expect(await objections(file, from)).toEqual([expect.stringMatching(/^no-restricted-imports: .* may import from/)]);
  });
});

describe("the way down is open", () => {
  const permitted = [
    ["static/src/viewer/workbench/key_bindings.ts", "../mosaic/span_picker"],
    ["static/src/viewer/mosaic/api.ts", "../lib/api"],
    ["static/src/viewer/rois/tools/tools.ts", "../store/roi_store"],
    ["static/src/viewer/map/tile_layers.ts", "ol/layer/Tile"],
    ["static/src/viewer/lib/key_bindings.ts", "../../dom/focus"],
    ["static/src/viewer/main.ts", "./workbench/key_bindings"],
    ["static/src/app/theme_toggle.ts", "../theme/theme"],
  ] as const;

  it.each(permitted)("%s imports %s", async (file, from) => {
    expect(await objections(file, from)).toEqual([]);
  });
});

describe("no two modules need each other", () => {
  /** The modules that each module imports, by their paths in static/src without the ending. */
  function imports(): Map<string, string[]> {
    const texts = import.meta.glob<string>("@/**/*.ts", { query: "?raw", import: "default", eager: true });
    const found = new Map<string, string[]>();
    for (const [path, text] of Object.entries(texts)) {
      const from = path.replace(/^.*static\/src\//, "").replace(/\.ts$/, "");
      const named = [...text.matchAll(/ from "(\.[^"]+)"/g)].map(([, to = ""]) => new URL(to, `file:///${from}`).pathname.slice(1));
      found.set(from, named);
    }
    return found;
  }

  /** A way from a module back to itself; empty where there is none. */
  function circle(graph: Map<string, string[]>): string[] {
    const done = new Set<string>();
    const walk = (at: string, way: string[]): string[] => {
      if (way.includes(at)) return [...way.slice(way.indexOf(at)), at];
      if (done.has(at)) return [];
      for (const next of graph.get(at) ?? []) {
        const found = walk(next, [...way, at]);
        if (found.length) return found;
      }
      done.add(at);
      return [];
    };
    return [...graph.keys()].map((at) => walk(at, [])).find((way) => way.length) ?? [];
  }

  it("finds a circle where there is one", () => {
    const planted = new Map([["a", ["b"]], ["b", ["c", "d"]], ["c", []], ["d", ["b"]]]);
    expect(circle(planted)).toEqual(["b", "d", "b"]);
  });

  it("finds none among the scripts", () => {
    const graph = imports();
    expect(graph.get("viewer/main")).toEqual(["dom/elements", "viewer/compare/start", "viewer/workbench/image_switch"]);
    expect(circle(graph)).toEqual([]);
  });
});
