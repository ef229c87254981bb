"""What registration leaves, and how much of it still holds when more frames have come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ml.mosaic.links import Link
from ml.types import ArrayF64


@dataclass(frozen=True, slots=True)
class Tracked:
    """A frame that rides along with a keyframe: matrix (3, 3), its working px to the key's."""

    position: int
    key: int
    matrix: ArrayF64


@dataclass(frozen=True, slots=True)
class KeyTrail:
    """What was known right after a keyframe was taken, so that registration can resume from it.

    Attributes:
        start: position of the first keyframe of the component it was linked to.
        H_start_from_key: (3, 3), its working px to that one's.
        motion: (3, 3), the guess for the next frame's motion.
        is_loop_keyframe: its key points are kept for loops.
    """

    position: int
    start: int
    H_start_from_key: ArrayF64
    motion: ArrayF64
    is_loop_keyframe: bool


@dataclass(frozen=True, slots=True)
class Registration:
    """Links between keyframes, the frames riding along, the loop keyframes, and the model chosen.

    Attributes:
        trail: one per keyframe, in order.
        fixed_pattern_digest: of the survey it was made with.
    """

    links: tuple[Link, ...]
    keys: tuple[int, ...]
    tracked: tuple[Tracked, ...]
    loop_keyframes: tuple[int, ...]
    motion_model: str
    trail: tuple[KeyTrail, ...] = ()
    fixed_pattern_digest: str = ""

    def taken(self) -> list[int]:
        """Positions of all frames that were taken, in order."""
        return sorted((*self.keys, *(item.position for item in self.tracked)))

    def until(self, last: int) -> Registration:
        """What it was after the frame at ``last``; ``loop_keyframes`` are all that were marked."""
        trail = tuple(key for key in self.trail if key.position <= last)
        return replace(
            self,
            links=tuple(link for link in self.links if link.a <= last),
            keys=tuple(key.position for key in trail),
            tracked=tuple(item for item in self.tracked if item.position <= last),
            loop_keyframes=tuple(key.position for key in trail if key.is_loop_keyframe),
            trail=trail,
        )


def still_holding(
    earlier: Registration | None, usable: Sequence[int], *, fixed_pattern_digest: str
) -> Registration | None:
    """The part of an earlier registration that one over ``usable`` frames would repeat.

    A frame's links depend on the frames before it and on the fixed pattern alone: what was taken
    holds up to the first frame that is now judged otherwise. None if nothing holds.
    """
    if earlier is None or earlier.fixed_pattern_digest != fixed_pattern_digest:
        return None
    last = None
    for taken, wanted in zip(earlier.taken(), usable, strict=False):
        if taken != wanted:
            break
        last = taken
    return None if last is None else earlier.until(last)
