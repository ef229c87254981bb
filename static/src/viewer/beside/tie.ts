/**
 * Images tied together: what one does the others do, each from where it stood when they were tied.
 * So two sections that were laid over each other by hand, at an offset, turned and scaled, stay so.
 */

/** What a pane shows: the centre in coordinates of its map (y up), units per screen pixel, radians clockwise. */
export interface Pose {
  centre: [number, number];
  resolution: number;
  rotation: number;
}

const turned = ([x, y]: [number, number], by: number): [number, number] => {
  const [cos, sin] = [Math.cos(by), Math.sin(by)];
  return [x * cos - y * sin, x * sin + y * cos];
};

/**
 * Where a pane goes that stood at `own` while the leading one stood at `lead`, now that that one is at
 * `now`: the same way across the screen, the same zoom, the same turn.
 */
export function followed(own: Pose, lead: Pose, now: Pose): Pose {
  const across: [number, number] = [
    (now.centre[0] - lead.centre[0]) / lead.resolution,
    (now.centre[1] - lead.centre[1]) / lead.resolution,
  ];
  const [dx, dy] = turned(across, own.rotation - lead.rotation);
  return {
    centre: [own.centre[0] + dx * own.resolution, own.centre[1] + dy * own.resolution],
    resolution: (own.resolution * now.resolution) / lead.resolution,
    rotation: own.rotation + now.rotation - lead.rotation,
  };
}

/** What a pane is, for the scale that it shares with the others. */
export interface Scaled {
  /** Microns per pixel; null where the image does not say. */
  mpp: number | null;
  resolution: number;
}

/** Resolutions at which all panes that know their pixel size are at one scale: that of the coarsest of them. */
export function atOneScale(panes: Scaled[]): number[] {
  const coarsest = Math.max(...panes.map(({ mpp, resolution }) => (mpp ? mpp * resolution : 0)));
  return panes.map(({ mpp, resolution }) => (mpp ? coarsest / mpp : resolution));
}
