/**
 * Synchronised views: a change of one view is applied to the others, relative to the views at the time they were
 * synchronised. Sections aligned by hand (offset, rotation, scale) stay aligned.
 */

/** The view of a pane: centre in map coordinates (y up), map units per screen pixel, radians clockwise. */
export interface Pose {
  centre: [number, number];
  resolution: number;
  rotation: number;
}

const rotated = ([x, y]: [number, number], by: number): [number, number] => {
  const [cos, sin] = [Math.cos(by), Math.sin(by)];
  return [x * cos - y * sin, x * sin + y * cos];
};

/**
 * The pose of a following pane after the leading pane moved from `leaderStart` to `leader`: the same shift on screen,
 * the same zoom factor, the same rotation, from `start`.
 */
export function synchronizedPose(start: Pose, leaderStart: Pose, leader: Pose): Pose {
  const across: [number, number] = [
    (leader.centre[0] - leaderStart.centre[0]) / leaderStart.resolution,
    (leader.centre[1] - leaderStart.centre[1]) / leaderStart.resolution,
  ];
  const [dx, dy] = rotated(across, start.rotation - leaderStart.rotation);
  return {
    centre: [start.centre[0] + dx * start.resolution, start.centre[1] + dy * start.resolution],
    resolution: (start.resolution * leader.resolution) / leaderStart.resolution,
    rotation: start.rotation + leader.rotation - leaderStart.rotation,
  };
}

export interface PaneScale {
  /** Microns per pixel; null if unknown. */
  mpp: number | null;
  resolution: number;
}

/** Resolutions that bring all panes of known pixel size to the scale of the coarsest one. */
export function resolutionsAtOneScale(panes: PaneScale[]): number[] {
  const coarsest = Math.max(...panes.map(({ mpp, resolution }) => (mpp ? mpp * resolution : 0)));
  return panes.map(({ mpp, resolution }) => (mpp ? coarsest / mpp : resolution));
}
