import { describe, expect, it } from "vitest";

import { atOneScale, followed } from "@/viewer/beside/tie";
import type { Pose } from "@/viewer/beside/tie";

const pose = (x: number, y: number, resolution: number, rotation = 0): Pose => ({ centre: [x, y], resolution, rotation });

/** Where a point of the plane is on screen, from the middle of the pane: right and up. */
function onScreen({ centre, resolution, rotation }: Pose, [x, y]: [number, number]): [number, number] {
  const [dx, dy] = [(x - centre[0]) / resolution, (y - centre[1]) / resolution];
  return [dx * Math.cos(rotation) + dy * Math.sin(rotation), dy * Math.cos(rotation) - dx * Math.sin(rotation)];
}

describe("a tied pane", () => {
  it("goes as far across the screen as the leading one, at its own scale", () => {
    expect(followed(pose(500, 500, 4), pose(100, 100, 1), pose(110, 95, 1))).toEqual(pose(540, 480, 4));
  });

  it("zooms and turns by as much", () => {
    const now = followed(pose(0, 0, 4, 0.5), pose(0, 0, 1, 0.1), pose(0, 0, 3, 0.4));
    expect([now.resolution, now.rotation]).toEqual([12, 0.8]);
  });

  it("keeps two places that were laid over each other over each other", () => {
    const [own, lead] = [pose(700, -300, 2, 1.2), pose(50, -80, 0.5, -0.4)];
    // the same place of the screen in both: 30 px to the right, 20 up
    const place = ({ centre, resolution, rotation: r }: Pose): [number, number] => [
      centre[0] + resolution * (30 * Math.cos(r) - 20 * Math.sin(r)),
      centre[1] + resolution * (30 * Math.sin(r) + 20 * Math.cos(r)),
    ];
    const [inOwn, inLead] = [place(own), place(lead)];
    const now = pose(61, -92, 1.7, 0.9);
    const [x, y] = onScreen(followed(own, lead, now), inOwn);
    const expected = onScreen(now, inLead);
    expect(x).toBeCloseTo(expected[0], 9);
    expect(y).toBeCloseTo(expected[1], 9);
  });

  it("stands where it stood once the leading one is back", () => {
    const [own, lead] = [pose(7, 8, 2, 1), pose(1, 2, 3, 0.5)];
    expect(followed(own, lead, lead)).toEqual(own);
  });
});

it("one scale is that of the coarsest; what knows no pixel size stays as it is", () => {
  const panes = [{ mpp: 0.25, resolution: 8 }, { mpp: 0.5, resolution: 10 }, { mpp: null, resolution: 3 }];
  expect(atOneScale(panes)).toEqual([20, 10, 3]);
  expect(atOneScale([{ mpp: null, resolution: 3 }])).toEqual([3]);
});
