"""Frames of an endoscopic video that look as if they were taken outside the body.

Tissue under the light of a scope is red, a room and its drapes are not. The light, the dye and the
camera decide how red, so that a frame is compared with its own video: videos that are
not mostly red, such as those in narrow-band light, are not judged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ml.imaging.resize import reduce_to
from ml.types import ImageU8

INSIDE_SHARE = 0.55
"""Median share of red from which a video counts as one of the inside."""
OUTSIDE_SHARE = 0.3
"""Share of red below which a frame of such a video counts as taken outside; the stills of
laparoscopy that white instruments fill are well above it."""
_MIN_LIT = 0.15  # share of a frame; a darker one is not judged
_MIN_FRAMES = 4  # needed for a median
_LONG_SIDE_PX = 160  # colours of areas need no more
_DARK, _WHITE = 40, 235  # grey levels: what the lamp does not reach, and glints
_OVER_GREEN, _OVER_BLUE = 1.15, 1.1  # red against the others; grey of a camera is within 5 %


def red_share(rgb: ImageU8) -> float | None:
    """Share of red in the lit part of a frame, 0 to 1; None for a frame that is mostly dark or
    white."""
    small = reduce_to(rgb, _LONG_SIDE_PX).astype(np.float32)
    lit = (small.max(axis=2) > _DARK) & (small.min(axis=2) < _WHITE)
    if lit.mean() < _MIN_LIT:
        return None
    red, green, blue = (small[..., channel][lit] for channel in range(3))
    return float(((red > _OVER_GREEN * green) & (red > _OVER_BLUE * blue)).mean())


def outside_frames(frames: Sequence[ImageU8]) -> list[int]:
    """Indices of the frames of a video that look as if taken outside the body."""
    shares = [red_share(frame) for frame in frames]
    measured = [share for share in shares if share is not None]
    if len(measured) < _MIN_FRAMES or float(np.median(measured)) < INSIDE_SHARE:
        return []
    return [at for at, share in enumerate(shares) if share is not None and share < OUTSIDE_SHARE]
