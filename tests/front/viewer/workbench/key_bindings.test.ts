import { describe, expect, it } from "vitest";

import { keyGroups } from "@/viewer/workbench/key_bindings";
import type { KeyTargets } from "@/viewer/workbench/key_bindings";

const nothing = (): void => undefined;
const MOSAIC_KEYS = { title: "Mosaic", bindings: [{ keys: ["shift+w", "t", "d", "f", "c", "v"], display: "Shift + W", does: "Which frames saw a point", run: nothing }] };
const SET = Array.from({ length: 9 }, (_, i) => ({ id: `l${i}`, name: `Label ${i}`, color: "#ff0000", position: i, parent: null, key: String(i + 1), retired: false }));

/** What the keys reach, as far as the table looks at it before a key is pressed. */
function targets(given: object = {}): KeyTargets {
  const commands = { undo: nothing, redo: nothing, remove: nothing, setLabel: nothing, openSheet: nothing };
  const made = { canAnnotate: true, labels: { onKeys: SET }, player: null, mosaicKeys: null, span: null, miniMap: null, tracks: null };
  return { ...commands, ...made, ...given } as unknown as KeyTargets;
}

const titles = (given: object): string[] => keyGroups(targets(given)).map(({ title }) => title);

describe("keyGroups", () => {
  it("has what the canvas has, and drawing where it is permitted", () => {
    const drawing = ["View", "Images of the case", "Select and measure", "Draw", "Change the selected regions", "Labels"];
    expect(titles({})).toEqual(drawing);
    expect(titles({ canAnnotate: false })).toEqual(["View", "Images of the case", "Select and measure"]);
    expect(titles({ player: {}, tracks: {} })).toEqual([...drawing, "Video", "Regions over several frames"]);
    expect(titles({ mosaicKeys: MOSAIC_KEYS })).toEqual([...drawing, "Mosaic"]);
  });

  it.each([
    ["a slide", {}],
    ["a video", { player: {}, tracks: {} }],
    ["a mosaic", { mosaicKeys: MOSAIC_KEYS }],
  ])("gives no key of %s two meanings", (_name, given) => {
    const keys = keyGroups(targets(given)).flatMap(({ bindings }) => bindings.flatMap((binding) => binding.keys));
    expect(keys.filter((key, place) => keys.indexOf(key) !== place)).toEqual([]);
  });

  it("sets the label on its number key", () => {
    let label: string | null = null;
    const groups = keyGroups(targets({ setLabel: (id: string | null) => (label = id) }));
    groups.find(({ title }) => title === "Labels")?.bindings[2]?.run?.();
    expect(label).toBe("l2");
  });
});
