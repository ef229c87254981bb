/** A track that is dragged along and stepped with the keys: `role=slider`, as ARIA has it. */

/** Frames that Page up and Page down leap, as C and V do. */
const LEAP = 10;

/** Where a key leads from `at`; null for a key that is none of a slider's. May lie outside 0 to `last`. */
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
  /** Where it stands, and the last place there is. */
  at: () => number;
  last: () => number;
  /** A key asks for this place. */
  seek: (place: number) => void;
  /** The pointer is at this share of the track's width, 0 at its left edge. */
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

/** A canvas the size of its track in the pixels of the screen, emptied; null where it cannot be drawn on. */
export function trackContext(canvas: HTMLCanvasElement, track: HTMLElement): CanvasRenderingContext2D | null {
  canvas.width = Math.max(1, Math.round(track.clientWidth * devicePixelRatio));
  canvas.height = Math.max(1, Math.round(track.clientHeight * devicePixelRatio));
  return canvas.getContext("2d");
}
