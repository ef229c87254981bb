"""Filmstrip: small pictures of a video from beginning to end, in one image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np
from av.video.frame import VideoFrame

from ml.errors import CorruptFileError
from ml.imaging.videos.containers import open_video
from ml.imaging.videos.display import frame_rgb, geometry_of_file
from ml.imaging.videos.frame_access import FrameReader, frames_from
from ml.types import FrameTable, ImageU8

HEIGHT_PX = 90
"""Height of one picture: twice what a timeline shows, for screens of double density."""
FILMSTRIP_QUALITY = 75  # of the JPEG, which is shown small
MAX_FULL_DECODE_FRAMES = 1_500
"""Frames up to which a video is decoded from end to end, at 1080p some five seconds; a longer one
has enough key frames to show those instead."""
_WIDEST_PX = 4 * HEIGHT_PX  # wider pictures are cropped, so that sixty fit into a JPEG


def evenly(table: FrameTable, count: int) -> list[int]:
    """Indices of ``count`` frames from the first to the last at even steps."""
    return np.rint(np.linspace(0, len(table) - 1, count)).astype(np.int64).tolist()


def filmstrip(
    path: str | Path, table: FrameTable, indices: Sequence[int], *, is_long: bool
) -> ImageU8:
    """Small pictures of frames.

    Args:
        indices: of the frames, ascending.
        is_long: show the key frame at or before each instead of the frame itself, which spares
            decoding everything between.
    Returns:
        (HEIGHT_PX, len(indices) * w, 3) uint8 RGB, w the width of one.
    Raises:
        NoVideoStreamError, CorruptFileError: as ``probe_video``.
    """
    pictures = [_reduce(rgb) for _, rgb in frames_near(path, table, indices, is_long=is_long)]
    if not pictures:
        raise CorruptFileError("no frame of the video can be decoded")
    width = pictures[0].shape[1]
    strip = np.zeros((HEIGHT_PX, width * len(indices), 3), np.uint8)
    for number in range(len(indices)):  # frames missing at the end repeat the last one
        picture = pictures[min(number, len(pictures) - 1)][:, :width]
        left = number * width
        strip[:, left : left + picture.shape[1]] = picture
    return strip


def frames_near(
    path: str | Path, table: FrameTable, indices: Sequence[int], *, is_long: bool
) -> Iterator[tuple[int, ImageU8]]:
    """Yield the index and upright RGB pixels of each frame, or of the key frame before it.

    With ``is_long`` the key frame at or before each index is read, and may repeat.
    """
    geometry = geometry_of_file(path)
    read = _key_frames if is_long else _exact_frames
    for index, frame in read(path, table, indices):
        yield index, frame_rgb(frame, geometry)


def _exact_frames(
    path: str | Path, table: FrameTable, indices: Sequence[int]
) -> Iterator[tuple[int, VideoFrame]]:
    remaining = iter(indices)
    target = next(remaining, None)
    with frames_from(path, table) as (_, frames):
        for index, frame in frames:
            while target is not None and index >= target:
                yield index, frame
                target = next(remaining, None)
            if target is None:
                return


def _key_frames(
    path: str | Path, table: FrameTable, indices: Sequence[int]
) -> Iterator[tuple[int, VideoFrame]]:
    with open_video(path) as (container, stream):
        stream.codec_context.skip_frame = "NONKEY"
        reader = FrameReader(container, stream, table)
        last = next(reader.from_start(), None)
        for index in indices:
            last = reader.key_frame_before(index) or last
            if last is not None:
                yield last


def _reduce(rgb: ImageU8) -> ImageU8:
    height, width = rgb.shape[:2]
    width_px = min(max(1, round(width * HEIGHT_PX / height)), _WIDEST_PX)
    return np.asarray(
        cv2.resize(rgb, (width_px, HEIGHT_PX), interpolation=cv2.INTER_AREA), np.uint8
    )
