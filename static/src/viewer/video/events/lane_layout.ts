/** Rows of the events on the timeline: none overlaps another while there is room. */

/** An event on the track, in pixels from its left edge. */
export interface LaneItem {
  left: number;
  /** Width of the mark or bar. */
  width: number;
  /** Width of its text. */
  textWidth: number;
}

export interface LanePlace {
  row: number;
  /** Room for mark and text up to the next event of the row. */
  room: number;
}

/** Gap between two events of a row. */
const GAP_PX = 4;

/**
 * Place events, sorted by their left edges, in at most `maxRows` rows: in the first row with room for the text,
 * else in the first where the marks do not overlap, else in the row that ends first.
 */
export function laneRows(items: LaneItem[], trackWidth: number, maxRows: number): LanePlace[] {
  const textEnds: number[] = Array.from({ length: maxRows }, () => -Infinity);
  const markEnds = [...textEnds];
  const rows = items.map(({ left, width, textWidth }) => {
    const isFree = (end: number): boolean => end <= left;
    const free = [textEnds.findIndex(isFree), markEnds.findIndex(isFree)].find((row) => row >= 0);
    const row = free ?? markEnds.indexOf(Math.min(...markEnds));
    markEnds[row] = Math.max(markEnds[row] ?? 0, left + width + GAP_PX);
    textEnds[row] = Math.max(textEnds[row] ?? 0, left + Math.max(width, textWidth) + GAP_PX);
    return row;
  });
  const nextLeft: number[] = Array.from({ length: maxRows }, () => trackWidth + GAP_PX);
  const rooms: number[] = [];
  for (let at = items.length - 1; at >= 0; at -= 1) {
    const [item, row] = [items[at], rows[at]];
    if (!item || row === undefined) continue;
    rooms[at] = Math.max(item.width, (nextLeft[row] ?? trackWidth) - item.left - GAP_PX);
    nextLeft[row] = item.left;
  }
  return rows.map((row, at) => ({ row, room: rooms[at] ?? 0 }));
}

/** A multiplier by which the common names get hues that are far from each other, and a prime. */
const [HASH_FACTOR, HASH_PRIME] = [1471, 99_991];

/** Hue of a name in degrees: the same for the same name in any case. */
export function hueOf(name: string): number {
  let hash = 0;
  for (const character of name.trim().toLocaleLowerCase()) hash = (hash * HASH_FACTOR + (character.codePointAt(0) ?? 0)) % HASH_PRIME;
  return hash % 360;
}
