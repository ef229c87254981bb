"""Frames of videos: the table, and one frame as an image, known by presentation time (PTS)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TypedDict

import numpy as np

from ml.errors import MlError
from ml.imaging.slides.jpeg import encode_jpeg
from ml.types import FrameTable
from portal.archive import storage
from portal.archive.models import Canvas, Video
from portal.core.errors import NotFoundError, UnavailableError

SCHEME = "1"
"""Part of every ETag; raise it when the same frame gives other bytes than before."""


class FrameRow(TypedDict):
    """One frame; ``key`` where it decodes by itself."""

    index: int
    pts: int
    time_s: float
    key: bool


class FramePage(TypedDict):
    """A stretch of a video's frames, JSON-able; ``count`` is all the video has."""

    time_base_s: float
    count: int
    start: int
    frames: list[FrameRow]


def frame_table(video: Video) -> FrameTable:
    """The frames of a ready video, read once per process."""
    if not video.frames_path:
        raise NotFoundError(f"{video.name} is not ready: its frames are not known yet.")
    return _table(str(storage.resolve(video.frames_path)))


def frame_page(video: Video, *, start: int, limit: int) -> FramePage:
    """A stretch of the frame table; beyond the end it is empty."""
    table = frame_table(video)
    stretch = slice(start, start + limit)
    rows = zip(table.pts[stretch].tolist(), table.key[stretch].tolist(), strict=True)
    return {
        "time_base_s": table.time_base_s,
        "count": len(table),
        "start": start,
        "frames": [
            {"index": at, "pts": pts, "time_s": round(pts * table.time_base_s, 6), "key": key}
            for at, (pts, key) in enumerate(rows, start)
        ],
    }


def frame_index(video: Video, pts: int) -> int:
    """The index of the frame with exactly this PTS.

    Raises:
        NotFoundError: there is none; the message names the nearest, which is never taken silently.
    """
    table = frame_table(video)
    at = int(np.searchsorted(table.pts, pts))
    if at < len(table) and int(table.pts[at]) == pts:
        return at
    near = [int(table.pts[i]) for i in (at - 1, at) if 0 <= i < len(table)]
    raise NotFoundError(
        f"{video.name} has no frame at PTS {pts}"
        + (f"; the nearest are {' and '.join(str(value) for value in near)}." if near else "."),
        code="frame-not-found",
        details={"pts": str(pts), "nearest": near},
    )


def frame_etag(canvas: Canvas, pts: int) -> str:
    """Names the frame's bytes."""
    return f'"{SCHEME}-{canvas.content_hash[:24]}-f{pts}"'


def frame_jpeg(canvas: Canvas, video: Video, pts: int) -> bytes:
    """One frame as JPEG, kept in the canvas' cache folder."""
    path = storage.cache_folder(canvas.pk) / f"frames-{SCHEME}" / f"{pts}.jpg"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        frame_index(video, pts)
    data = _decode(storage.resolve(canvas.pixels_path), pts)
    storage.file_publish(path, data)
    return data


def _decode(path: Path, pts: int) -> bytes:
    from ml.imaging.videos import read_frame

    try:
        return encode_jpeg(read_frame(path, pts))
    except (OSError, MlError) as error:
        raise UnavailableError("This frame cannot be read from the stored file.") from error


@lru_cache(maxsize=32)
def _table(path: str) -> FrameTable:
    from ml.imaging.ingest import load_frame_table

    try:
        return load_frame_table(path)
    except (OSError, KeyError, ValueError) as error:
        raise UnavailableError("The frame table of this video cannot be read.") from error
