"""What registration leaves, and how much of it still holds when more frames have come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ml.mosaic.links import Link
from ml.types import ArrayF64


@dataclass(frozen=True, slots=True)
class Tracked:
    """A frame that rides along with a key frame: matrix (3, 3), its working px to the key's."""

    position: int
    key: int
    matrix: ArrayF64


@dataclass(frozen=True, slots=True)
class KeyTrail:
    """What was known right after a key frame was taken, so that registration can go on from it.

    Attributes:
        chain: position of the key frame that its unbroken chain began with.
        place: (3, 3), its working px to that one's.
        motion: (3, 3), the guess for the next frame's motion.
        is_landmark: its key points are kept for loops.
    """

    position: int
    chain: int
    place: ArrayF64
    motion: ArrayF64
    is_landmark: bool


@dataclass(frozen=True, slots=True)
class Registration:
    """Links between key frames, the frames riding along, the landmarks, and the model chosen.

    Attributes:
        trail: one a key frame, in order.
        lens: ``Survey.lens_digest`` of the survey it was made with.
    """

    links: tuple[Link, ...]
    keys: tuple[int, ...]
    tracked: tuple[Tracked, ...]
    landmarks: tuple[int, ...]
    model: str
    trail: tuple[KeyTrail, ...] = ()
    lens: str = ""

    def taken(self) -> list[int]:
        """Positions of all frames that were taken, in order."""
        return sorted((*self.keys, *(item.position for item in self.tracked)))

    def until(self, last: int) -> Registration:
        """What it was after the frame at ``last``; ``landmarks`` are all that were marked."""
        trail = tuple(key for key in self.trail if key.position <= last)
        return replace(
            self,
            links=tuple(link for link in self.links if link.a <= last),
            keys=tuple(key.position for key in trail),
            tracked=tuple(item for item in self.tracked if item.position <= last),
            landmarks=tuple(key.position for key in trail if key.is_landmark),
            trail=trail,
        )


def still_holding(
    earlier: Registration | None, usable: Sequence[int], *, lens: str
) -> Registration | None:
    """The part of an earlier registration that one over ``usable`` frames would repeat.

    A frame's links depend on the frames before it and on the lens alone: what was taken holds up to
    the first frame that is now judged otherwise. None where nothing holds.
    """
    if earlier is None or earlier.lens != lens:
        return None
    last = None
    for taken, wanted in zip(earlier.taken(), usable, strict=False):
        if taken != wanted:
            break
        last = taken
    return None if last is None else earlier.until(last)
