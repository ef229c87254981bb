/** Places as they are stored: in whole hundredths of a level-0 pixel. */

import type { Position } from "./types";

const round = (value: number): number => Math.round(value * 100) / 100 + 0; // + 0: never minus zero

export function inHundredths([x, y]: Position): Position {
  return [round(x), round(y)];
}
