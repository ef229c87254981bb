/** Playback by the media element: once to the end, or a looped span of frames. */

import type { FrameTable } from "./frame_table";

/** A seek to the very start of a frame may show the one before it. */
const JUST_INSIDE_S = 1e-4;
/** A seek may be early by this number of frames; from there the media element plays into the span. */
const EARLY_FRAMES = 2;

export class Playback {
  /** First and last frame of the loop; null plays once to the end. */
  loop: [number, number] | null = null;
  /** Number of starts and stops: callbacks of earlier ones do nothing. */
  private turn = 0;

  constructor(
    private readonly media: HTMLVideoElement,
    private readonly frames: FrameTable,
    /** Called with the frame shown by the media element, within the loop if there is one. */
    private readonly onFrame: (index: number) => void,
  ) {}

  /** Play on from this frame; false if it was stopped or started again before it began. */
  async start(index: number): Promise<boolean> {
    this.turn += 1;
    const { turn } = this;
    const [first, last] = this.loop ?? [0, this.frames.length - 1];
    this.goTo(index >= last || index < first ? first : index);
    try {
      await this.media.play();
    } catch (error) {
      if (turn === this.turn) throw error;
    }
    if (turn !== this.turn) return false;
    this.follow(turn);
    return true;
  }

  stop(): void {
    this.turn += 1;
    this.media.pause();
  }

  /** Begin the span again at the end of the recording; false if there is none. */
  repeat(): boolean {
    if (!this.loop) return false;
    this.goTo(this.loop[0]);
    void this.media.play().catch(() => undefined); // paused before playback started
    return true;
  }

  private goTo(index: number): void {
    this.media.currentTime = index <= 0 ? 0 : this.frames.mediaTime(index) + JUST_INSIDE_S;
  }

  private follow(turn: number): void {
    const onFrame = (mediaTime: number): void => {
      if (turn !== this.turn) return;
      this.pass(this.frames.nearestToMediaTime(mediaTime));
      this.follow(turn);
    };
    if ("requestVideoFrameCallback" in this.media) {
      this.media.requestVideoFrameCallback((_now, { mediaTime }) => onFrame(mediaTime));
    } else {
      requestAnimationFrame(() => onFrame(this.media.currentTime));
    }
  }

  /** Between the last frame of a span and the seek to its first, the media element shows others. */
  private pass(index: number): void {
    const [first, last] = this.loop ?? [0, Infinity];
    if (index >= first && index <= last) this.onFrame(index);
    if ((index >= last || index < first - EARLY_FRAMES) && !this.media.seeking) this.goTo(first);
  }
}
