"""Frame sources: a folder of images, a video file, or arrays, readable repeatedly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError
from ml.keypoints.pixels import to_u8
from ml.natural_order import natural_sort
from ml.types import ImageU8

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".webp"})
MASK_NAMES = ("mask.png", "undistorted_mask.jpg")
"""Masks of the camera's view, which some sequences have among their frames."""


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """A decoded frame: ``rgb`` is (H, W, 3) uint8, or None if it could not be read.

    ``time_s`` is the PTS in seconds; None for folders and arrays, which have no clock. ``name`` is
    that of the image's file in a folder, "" elsewhere.
    """

    index: int
    pts: int
    rgb: ImageU8 | None
    time_s: float | None = None
    name: str = ""


class FrameSource(Protocol):
    """Frames in order, readable repeatedly; ``count`` may be an estimate for damaged videos."""

    count: int

    def frames(self, first: int = 0) -> Iterator[SourceFrame]:
        """Yield every frame from the ``first``-th on, the same each time."""


def open_source(
    frames_or_video: str | Path | Sequence[npt.NDArray[Any]] | npt.NDArray[Any],
    *,
    step: int = 1,
    start_pts: int | None = None,
    end_pts: int | None = None,
) -> FrameSource:
    """Open a folder of images (natural order), a video file, or a sequence of (H, W[, C]) arrays.

    Args:
        start_pts, end_pts: the span of a video, both inclusive; a folder or arrays have no clock.

    Raises:
        BadInputError: nothing there, no image in it, or no frame in the span.
    """
    if not isinstance(frames_or_video, (str, Path)):
        return ArraySource(frames_or_video, step)
    path = Path(frames_or_video)
    if path.is_dir():
        return FolderSource(path, step)
    if path.is_file():
        return VideoSource(path, step, start_pts=start_pts, end_pts=end_pts)
    raise BadInputError(f"{path.name}: expected a folder of frames or a video, found nothing")


class ArraySource:
    """A sequence of arrays; the PTS is the index."""

    def __init__(self, arrays: Sequence[npt.NDArray[Any]] | npt.NDArray[Any], step: int) -> None:
        self._arrays, self._step = arrays, step
        self.count = -(-len(arrays) // step)

    def frames(self, first: int = 0) -> Iterator[SourceFrame]:
        """Yield every step-th array as RGB."""
        for index in range(first * self._step, len(self._arrays), self._step):
            yield SourceFrame(index, index, as_rgb(np.asarray(self._arrays[index])))


class FolderSource:
    """A folder of images in natural order, without its masks; an unreadable one has no pixels."""

    def __init__(self, folder: Path, step: int) -> None:
        paths = natural_sort(
            p
            for p in folder.iterdir()
            if p.is_file() and p.suffix.lower() in IMAGE_SUFFIXES and p.name not in MASK_NAMES
        )
        if not paths:
            raise BadInputError(f"{folder.name}: expected a folder of frames, found no image")
        self._paths, self._step = paths, step
        self.count = -(-len(paths) // step)

    def frames(self, first: int = 0) -> Iterator[SourceFrame]:
        """Yield every step-th image."""
        for index in range(first * self._step, len(self._paths), self._step):
            path = self._paths[index]
            data = np.frombuffer(path.read_bytes(), np.uint8)
            pixels = cv2.imdecode(data, cv2.IMREAD_COLOR) if len(data) else None
            rgb = None
            if pixels is not None:
                rgb = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), np.uint8)
            yield SourceFrame(index, index, rgb, name=path.name)


class VideoSource:
    """A video file, all of it or a span; frames carry the container's presentation time stamps."""

    def __init__(
        self, path: Path, step: int, *, start_pts: int | None = None, end_pts: int | None = None
    ) -> None:
        from ml.imaging.videos.video import probe_video

        self._table = probe_video(path).frames
        self._path, self._step, self._end_pts = path, step, end_pts
        stepped = self._table.pts[::step]
        inside = np.ones(len(stepped), np.bool_)
        if start_pts is not None:
            inside &= stepped >= start_pts
        if end_pts is not None:
            inside &= stepped <= end_pts
        self._pts = stepped[inside]
        self.count = len(self._pts)
        if len(stepped) and not self.count:
            available = f"{int(stepped[0])} to {int(stepped[-1])}"
            raise BadInputError(
                f"span: expected time stamps within {available}, got {start_pts} to {end_pts}"
            )

    def frames(self, first: int = 0) -> Iterator[SourceFrame]:
        """Yield every step-th decodable frame of the span, without decoding what precedes it."""
        from ml.imaging.videos.video import iter_frames

        if first >= self.count:
            return
        start = int(self._pts[first])
        for index, pts, rgb in iter_frames(
            self._path, step=self._step, start_pts=start, stop_pts=self._end_pts, table=self._table
        ):
            yield SourceFrame(int(index), int(pts), rgb, float(pts) * self._table.time_base_s)


def as_rgb(image: npt.NDArray[Any]) -> ImageU8:
    """(H, W, 3) uint8 of a grey, RGB or RGBA image of any bit depth."""
    pixels = to_u8(image, name="frame")
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.shape[2] == 1:
        pixels = np.repeat(pixels, 3, axis=2)
    return np.ascontiguousarray(pixels[:, :, :3])
