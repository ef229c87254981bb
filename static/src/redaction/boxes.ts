/** Boxes to redact, with undo. All numbers are shares of the picture's sides. */

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Finding extends Box {
  kind: string;
  text: string;
}

/** Smallest side of a box: a click is no box. */
export const MIN_SIDE = 0.004;
/** Margin around text on each side, as a share of its height: letters extend beyond the detected line. */
const MARGIN = 0.25;

/** The box between two corners, within the picture; null if it is too small to be meant. */
export function boxBetween(one: [number, number], other: [number, number]): Box | null {
  const [left, right] = [clamp(Math.min(one[0], other[0])), clamp(Math.max(one[0], other[0]))];
  const [top, bottom] = [clamp(Math.min(one[1], other[1])), clamp(Math.max(one[1], other[1]))];
  const box = { x: left, y: top, width: right - left, height: bottom - top };
  return box.width < MIN_SIDE || box.height < MIN_SIDE ? null : box;
}

/** A box moved by a step; it stays within the picture. */
export function moveBox(box: Box, dx: number, dy: number): Box {
  const x = Math.min(Math.max(box.x + dx, 0), 1 - box.width);
  const y = Math.min(Math.max(box.y + dy, 0), 1 - box.height);
  return { ...box, x, y };
}

/** A box whose lower right corner is moved by a step. */
export function resizeBox(box: Box, dx: number, dy: number): Box {
  const width = Math.min(Math.max(box.width + dx, MIN_SIDE), 1 - box.x);
  const height = Math.min(Math.max(box.height + dy, MIN_SIDE), 1 - box.y);
  return { ...box, width, height };
}

/**
 * The boxes of a template, and boxes around what was found outside them, except findings that are
 * the full picture.
 */
export function proposeBoxes(findings: readonly Finding[], template: readonly Box[] = []): Box[] {
  const boxes = [...template];
  for (const finding of findings) {
    if (template.some((box) => covers(box, finding))) continue;
    const margin = MARGIN * finding.height;
    const box = boxBetween(
      [finding.x - margin, finding.y - margin],
      [finding.x + finding.width + margin, finding.y + finding.height + margin],
    );
    if (box && finding.width < 1) boxes.push(box);
  }
  return boxes;
}

function covers(box: Box, found: Box): boolean {
  const isWithin = (start: number, length: number, from: number, span: number): boolean =>
    start >= from && start + length <= from + span;
  return isWithin(found.x, found.width, box.x, box.width) && isWithin(found.y, found.height, box.y, box.height);
}

/** The boxes on a page and their history. */
export class BoxHistory {
  private past: Box[][] = [];
  private future: Box[][] = [];

  constructor(private present: Box[]) {}

  get boxes(): readonly Box[] {
    return this.present;
  }

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  get canRedo(): boolean {
    return this.future.length > 0;
  }

  add(box: Box): number {
    this.change([...this.present, box]);
    return this.present.length - 1;
  }

  replace(index: number, box: Box): void {
    this.change(this.present.map((old, at) => (at === index ? box : old)));
  }

  remove(index: number): void {
    this.change(this.present.filter((_, at) => at !== index));
  }

  undo(): void {
    const before = this.past.pop();
    if (!before) return;
    this.future.push(this.present);
    this.present = before;
  }

  redo(): void {
    const after = this.future.pop();
    if (!after) return;
    this.past.push(this.present);
    this.present = after;
  }

  private change(boxes: Box[]): void {
    this.past.push(this.present);
    this.future = [];
    this.present = boxes;
  }
}

function clamp(value: number): number {
  return Math.min(Math.max(value, 0), 1);
}
