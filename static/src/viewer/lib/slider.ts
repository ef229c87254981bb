/** A track that is dragged along and stepped with the keys: `role=slider`, as ARIA has it. */

/** The frames that Page Up and Page Down skip; the keys C and V skip as many. */
const LEAP = 10;

/** Position that a key moves to from `at`, possibly outside 0 to `last`; null for other keys. */
export function slideTarget(key: string, at: number, last: number): number | null {
  const targets: Record<string, number> = {
    ArrowLeft: at - 1,
    ArrowRight: at + 1,
    PageUp: at - LEAP,
    PageDown: at + LEAP,
    Home: 0,
    End: last,
  };
  return targets[key] ?? null;
}

export interface Slide {
  /** The current position, and the last one. */
  at: () => number;
  last: () => number;
  /** Move to a position, by a key. */
  seek: (position: number) => void;
  /** Move to a share of the track's width (0 is its left edge), by the pointer. */
  drag: (share: number) => void;
}

export function slider(track: HTMLElement, { at, last, seek, drag }: Slide): void {
  const follow = (event: PointerEvent): void => {
    const box = track.getBoundingClientRect();
    drag((event.clientX - box.left) / Math.max(box.width, 1));
  };
  track.addEventListener("pointerdown", (event) => {
    track.setPointerCapture(event.pointerId);
    follow(event);
  });
  track.addEventListener("pointermove", (event) => {
    if (track.hasPointerCapture(event.pointerId)) follow(event);
  });
  track.addEventListener("keydown", (event) => {
    const target = slideTarget(event.key, at(), last());
    if (target === null) return;
    event.preventDefault();
    event.stopPropagation();
    seek(target);
  });
}

/** An empty canvas of the size of its track in device pixels; null if it cannot be drawn on. */
export function trackContext(canvas: HTMLCanvasElement, track: HTMLElement): CanvasRenderingContext2D | null {
  canvas.width = Math.max(1, Math.round(track.clientWidth * devicePixelRatio));
  canvas.height = Math.max(1, Math.round(track.clientHeight * devicePixelRatio));
  return canvas.getContext("2d");
}
