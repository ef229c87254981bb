"""Frames of videos: the table, and one frame as an image, known by presentation time (PTS)."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import TypedDict

import numpy as np

from ml.errors import CorruptFileError, MlError
from ml.types import FrameTable, ImageU8
from portal.archive.inspection import FILMSTRIP_NAME, filmstrip_make
from portal.archive.models import Canvas, Video
from portal.archive.selectors.canvases import canvas_video
from portal.archive.selectors.frame_runs import frame_by_run, only_one
from portal.archive.storage import files as storage
from portal.core.errors import NotFoundError, UnavailableError

SCHEME = "2"
"""Part of every ETag; raise it when the same frame gives other bytes than before."""

MAX_FILMSTRIP_FRAMES = 60
"""Pictures in a filmstrip: a wide screen shows some twenty side by side, large ones more."""


class FrameRow(TypedDict):
    """A frame; ``key`` if it is a key frame."""

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


def frame_pixels(canvas: Canvas, pts: int) -> ImageU8:
    """The frame of a video with exactly this PTS, decoded in this process: (H, W, 3) RGB.

    Raises:
        OSError, MlError: there is none, or the stored files cannot be read.
    """
    return stored_frame(canvas.pixels_path, canvas_video(canvas).frames_path, pts)


def stored_frame(pixels_path: str, frames_path: str, pts: int) -> ImageU8:
    """Read a frame by the storage paths of the pixels and the frame table; see ``frame_pixels``."""
    from ml.imaging.videos.video import read_frame

    try:
        table = _table(str(storage.resolve(frames_path)))
    except UnavailableError as error:
        raise CorruptFileError("the frame table of this video cannot be read") from error
    return read_frame(storage.resolve(pixels_path), pts, table=table)


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
    index = table.index_of(pts)
    if index is not None:
        return index
    at = int(np.searchsorted(table.pts, pts))
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
    """A frame as JPEG, cached in the canvas' cache folder."""
    folder = storage.cache_folder(canvas.pk) / f"frames-{SCHEME}"
    with suppress(FileNotFoundError):
        return (folder / f"{pts}.jpg").read_bytes()
    index = frame_index(video, pts)
    source = storage.resolve(canvas.pixels_path)
    try:
        return frame_by_run(source, frame_table(video), index, folder)
    except (OSError, MlError) as error:
        raise UnavailableError("This frame cannot be read from the stored file.") from error


def filmstrip_count(frames: int) -> int:
    """Number of filmstrip pictures for a video with this many frames."""
    return min(frames, MAX_FILMSTRIP_FRAMES)


def filmstrip_jpeg(canvas: Canvas, video: Video) -> bytes:
    """Small pictures of the video from its first frame to its last, side by side in one JPEG.

    Made once, by a limited child process, and kept in the canvas' cache folder. Picture ``i`` of
    ``n`` shows the frame at ``i * (count - 1) / (n - 1)``; of a long video the key frame before it.

    Raises:
        UnavailableError: the stored file cannot be read.
    """
    folder = storage.cache_folder(canvas.pk) / f"filmstrip-{SCHEME}"
    path = folder / FILMSTRIP_NAME
    with suppress(FileNotFoundError):
        return path.read_bytes()
    source = storage.resolve(canvas.pixels_path)
    with only_one(folder / "lock"):
        if not path.exists():
            frames, total = storage.resolve(video.frames_path), len(frame_table(video))
            try:
                filmstrip_make(source, folder, frames, total, filmstrip_count(total))
            except (OSError, MlError) as error:
                raise UnavailableError("The pictures of this video cannot be read.") from error
        return path.read_bytes()


@lru_cache(maxsize=32)
def _table(path: str) -> FrameTable:
    from ml.imaging.videos.frame_table_file import load_frame_table

    try:
        return load_frame_table(path)
    except (OSError, KeyError, ValueError) as error:
        raise UnavailableError("The frame table of this video cannot be read.") from error
