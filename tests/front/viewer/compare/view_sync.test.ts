import { describe, expect, it } from "vitest";

import { resolutionsAtOneScale, synchronizedPose } from "@/viewer/compare/view_sync";
import type { Pose } from "@/viewer/compare/view_sync";

const pose = (x: number, y: number, resolution: number, rotation = 0): Pose => ({ centre: [x, y], resolution, rotation });

/** Where a point of the plane is on screen, from the middle of the pane: right and up. */
function onScreen({ centre, resolution, rotation }: Pose, [x, y]: [number, number]): [number, number] {
  const [dx, dy] = [(x - centre[0]) / resolution, (y - centre[1]) / resolution];
  return [dx * Math.cos(rotation) + dy * Math.sin(rotation), dy * Math.cos(rotation) - dx * Math.sin(rotation)];
}

describe("a synchronised pane", () => {
  it("moves as far on screen as the leading one, at its own scale", () => {
    expect(synchronizedPose(pose(500, 500, 4), pose(100, 100, 1), pose(110, 95, 1))).toEqual(pose(540, 480, 4));
  });

  it("zooms and rotates by the same amount", () => {
    const now = synchronizedPose(pose(0, 0, 4, 0.5), pose(0, 0, 1, 0.1), pose(0, 0, 3, 0.4));
    expect([now.resolution, now.rotation]).toEqual([12, 0.8]);
  });

  it("keeps aligned places aligned", () => {
    const [own, lead] = [pose(700, -300, 2, 1.2), pose(50, -80, 0.5, -0.4)];
    // the same place of the screen in both: 30 px to the right, 20 up
    const place = ({ centre, resolution, rotation: r }: Pose): [number, number] => [
      centre[0] + resolution * (30 * Math.cos(r) - 20 * Math.sin(r)),
      centre[1] + resolution * (30 * Math.sin(r) + 20 * Math.cos(r)),
    ];
    const [inOwn, inLead] = [place(own), place(lead)];
    const now = pose(61, -92, 1.7, 0.9);
    const [x, y] = onScreen(synchronizedPose(own, lead, now), inOwn);
    const expected = onScreen(now, inLead);
    expect(x).toBeCloseTo(expected[0], 9);
    expect(y).toBeCloseTo(expected[1], 9);
  });

  it("is back at its start once the leading one is", () => {
    const [own, lead] = [pose(7, 8, 2, 1), pose(1, 2, 3, 0.5)];
    expect(synchronizedPose(own, lead, lead)).toEqual(own);
  });
});

it("matches the coarsest scale and leaves images without pixel size alone", () => {
  const panes = [{ mpp: 0.25, resolution: 8 }, { mpp: 0.5, resolution: 10 }, { mpp: null, resolution: 3 }];
  expect(resolutionsAtOneScale(panes)).toEqual([20, 10, 3]);
  expect(resolutionsAtOneScale([{ mpp: null, resolution: 3 }])).toEqual([3]);
});
