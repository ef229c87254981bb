import { beforeEach, describe, expect, it, vi } from "vitest";

import { History } from "@/viewer/lib/history";
import { RoiLayer } from "@/viewer/rois/rendering/roi_layer";
import { RoiEdits } from "@/viewer/rois/store/edits";
import { Labels } from "@/viewer/rois/store/labels";
import { RoiStore } from "@/viewer/rois/store/roi_store";
import { RoiCommands } from "@/viewer/rois/tools/commands";
import { canvas } from "../../canvases";
import { roi, square } from "../fake_server";

beforeEach(() => {
  vi.stubGlobal("requestAnimationFrame", () => 0);
  vi.stubGlobal("addEventListener", () => undefined);
});

describe("the message of a selection", () => {
  it("is shown until the selection changes", () => {
    const shown: string[] = [];
    const store = new RoiStore(canvas());
    const layer = new RoiLayer(store, Labels.empty());
    store.merge(["a", "b"].map((id) => roi({ id, geometry: square(0) })));
    const commands = new RoiCommands(layer, new RoiEdits(store, new History()), Labels.empty(), {
      frame: () => null,
      resolution: () => 1,
      isWindowed: () => false,
      showNotice: (text) => shown.push(text),
      hideNotice: (text) => shown.splice(shown.indexOf(text), 1),
    });
    commands.selectAll();
    expect(shown).toEqual(["2 regions selected."]);
    layer.select("a");
    expect(shown).toEqual([]);
  });
});
