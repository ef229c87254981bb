"""Frames of a video that an ROI may lie on: index and presentation time name the same one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from portal.archive.models import Canvas, CanvasKind, Video
from portal.archive.selectors.frames import frame_table
from portal.core.errors import InvalidInputError, UnavailableError


@dataclass(frozen=True, slots=True)
class FrameRef:
    """A frame: its index in presentation order and its PTS in units of the video's time base."""

    index: int
    pts: int


def frame_resolve(canvas: Canvas, *, index: int | None, pts: int | None) -> FrameRef | None:
    """The frame of the canvas that is meant, or None if the canvas has no time.

    Either may be left out; where both are given they must name the same frame.

    Raises:
        InvalidInputError: a frame on a canvas without time, none on a video, or one that is not in
            the video's frame table.
        UnavailableError: that table is not ready yet.
    """
    if canvas.kind != CanvasKind.VIDEO:
        if index is None and pts is None:
            return None
        raise InvalidInputError("frame: only a video has frames; leave it out on this canvas.")
    if index is None and pts is None:
        raise InvalidInputError("frame: a region on a video needs its frame: {index, pts}.")
    table = frame_pts(canvas)
    if index is None:
        index = _index_of(table, pts if pts is not None else 0)
    if not 0 <= index < len(table):
        raise InvalidInputError(
            f"frame: index {index} is not in this video; it has frames 0 to {len(table) - 1}."
        )
    if pts is not None and int(table[index]) != pts:
        raise InvalidInputError(
            f"frame: index {index} has the presentation time {int(table[index])}, not {pts}.",
            code="frame-mismatch",
        )
    return FrameRef(index, int(table[index]))


def frame_pts(canvas: Canvas) -> npt.NDArray[np.int64]:
    """(N,) int64: the PTS of every frame of the canvas' video, in presentation order."""
    video = Video.objects.filter(canvas=canvas).first()
    if video is None:
        raise UnavailableError("frame: the frame table of this video is not ready yet.")
    return frame_table(video).pts


def _index_of(table: npt.NDArray[np.int64], pts: int) -> int:
    positions = np.flatnonzero(table == pts)
    if not len(positions):
        raise InvalidInputError(f"frame: no frame of this video has the presentation time {pts}.")
    return int(positions[0])
