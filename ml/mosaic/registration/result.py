"""Result of registration, and the part of it that stays valid when more frames arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ml.mosaic.registration.links import Link
from ml.types import ArrayF64


@dataclass(frozen=True, slots=True)
class Tracked:
    """A frame placed by a keyframe: matrix (3, 3), its working px to the keyframe's."""

    position: int
    key: int
    matrix: ArrayF64


@dataclass(frozen=True, slots=True)
class KeyTrail:
    """State after a keyframe was taken, so that registration can resume from it.

    Attributes:
        start: position of the first keyframe of the component it was linked to.
        H_start_from_key: (3, 3), its working px to that keyframe's.
        motion: (3, 3), initial guess for the next frame's motion.
        is_loop_keyframe: its key points are stored for loops.
    """

    position: int
    start: int
    H_start_from_key: ArrayF64
    motion: ArrayF64
    is_loop_keyframe: bool


@dataclass(frozen=True, slots=True)
class Registration:
    """Links between keyframes, frames placed by them, loop keyframes, and the chosen model.

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

    def positions(self) -> list[int]:
        """Positions of all registered frames, in order."""
        return sorted((*self.keys, *(item.position for item in self.tracked)))

    def until(self, last: int) -> Registration:
        """Registration as it was after the frame at ``last``, with all marked
        ``loop_keyframes``."""
        trail = tuple(key for key in self.trail if key.position <= last)
        return replace(
            self,
            links=tuple(link for link in self.links if link.a <= last),
            keys=tuple(key.position for key in trail),
            tracked=tuple(item for item in self.tracked if item.position <= last),
            loop_keyframes=tuple(key.position for key in trail if key.is_loop_keyframe),
            trail=trail,
        )


def valid_part(
    earlier: Registration | None, usable: Sequence[int], *, fixed_pattern_digest: str
) -> Registration | None:
    """Part of an earlier registration that a new one over ``usable`` frames would repeat.

    A frame's links depend only on the frames before it and on the fixed pattern, so the earlier
    result is valid up to the first frame that is now judged differently. None if nothing is valid.
    """
    if earlier is None or earlier.fixed_pattern_digest != fixed_pattern_digest:
        return None
    last = None
    for previous, current in zip(earlier.positions(), usable, strict=False):
        if previous != current:
            break
        last = previous
    return None if last is None else earlier.until(last)
