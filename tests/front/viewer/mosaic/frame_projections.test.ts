import { expect, it, vi } from "vitest";

import { Emitter } from "@/viewer/lib/events";
import { FrameProjections } from "@/viewer/mosaic/frame_projections";
import type { ProjectionTargets } from "@/viewer/mosaic/frame_projections";
import type { MiniMap } from "@/viewer/mosaic/mini_map";
import { Labels } from "@/viewer/rois/store/labels";
import { FrameStatus } from "@/viewer/video/frame_status";
import type { VideoPlayer } from "@/viewer/video/player";

it("asks the mosaic only for frames of its span", () => {
  const requested: string[] = [];
  vi.stubGlobal("fetch", (url: string) => {
    requested.push(url);
    return Promise.resolve(Response.json({ results: [] }));
  });
  const player = Object.assign(new Emitter<Record<string, unknown>>(), { frame: { index: 0, pts: 0 } });
  const map = new Emitter<Record<string, unknown>>();
  const targets = {
    mapView: { map: { getLayers: () => ({ getLength: () => 1, insertAt: () => undefined }) } },
    labels: Labels.empty(),
    layer: new Emitter(),
    tools: new Emitter(),
  };
  new FrameProjections(player as unknown as VideoPlayer, map as unknown as MiniMap, targets as unknown as ProjectionTargets);
  const frameStatus = new FrameStatus({ pts: [0, 40] } as FrameStatus["columns"]);
  map.emit("frameStatus", { mosaic: { id: "m1" }, frameStatus });
  for (const [index, pts] of [40, 80].entries()) {
    player.frame = { index: index + 1, pts };
    player.emit("frame", { exact: true });
  }
  expect(requested).toEqual([0, 40].map((pts) => `/api/v1/mosaics/m1/projected-rois/?pts=${pts}`));
});
