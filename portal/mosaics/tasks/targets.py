"""Images to search for a place: frames of a video, or windows of a mosaic or still."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypedDict

import cv2
import numpy as np
import numpy.typing as npt

from ml.imaging.videos.video import iter_frames, read_frame
from ml.types import ArrayF64, ImageU8
from portal.annotations.models import Roi
from portal.archive.models import Canvas, CanvasKind
from portal.archive.selectors.canvases import canvas_video
from portal.archive.selectors.frames import frame_pixels, frame_table
from portal.archive.selectors.pixels import canvas_slide_open
from portal.archive.storage import files as storage

SAMPLED_FRAMES, NEARBY_FRAMES = 48, 4
"""A first pass that bounds the work for any length of video, and frames around what it finds."""

PLACE_MARGIN, PLACE_SMALLEST_PX, PLACE_LARGEST_PX = 0.75, 192, 720
"""Surroundings of the ROI, as a share of its side; the smallest and largest picture of it: enough
texture to match, and no more than a frame's worth of key points."""

WINDOW_PX, WINDOW_STEP_PX, IMAGE_LARGEST_PX = 640, 400, 2400
"""Windows of a frame's size that overlap by more than a third, over an image drawn no larger than
this many px: at most 36 of them."""

MAX_HITS = 8
"""Same as ``FollowupConfig.max_hits``."""


class FrameNames(TypedDict):
    """Identification of a frame; all None on a mosaic or still, which has no time."""

    index: int | None
    pts: int | None
    time_s: float | None


class PlaceFound(Protocol):
    """Attributes of ``ml.mosaic.followup.PlaceHit`` that are used here."""

    key: int
    score: float
    outline_frame: npt.NDArray[np.float64]


Finder = Callable[[Iterable[tuple[int, ImageU8]], int], Sequence[Any]]
"""Given keyed images and how many there are, the hits among them, the surest first."""


def place_of(roi: Roi) -> tuple[ImageU8, ArrayF64]:
    """The ROI with its surroundings, at most 720 px, and its outline there."""
    canvas = roi.canvas
    side = max(roi.right - roi.left, roi.bottom - roi.top)
    margin = max(side * PLACE_MARGIN, (PLACE_SMALLEST_PX - side) / 2)
    left, top = max(0.0, roi.left - margin), max(0.0, roi.top - margin)
    width = min(canvas.width_px, roi.right + margin) - left
    height = min(canvas.height_px, roi.bottom + margin) - top
    scale = min(1.0, PLACE_LARGEST_PX / max(width, height))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    if canvas.kind == CanvasKind.VIDEO:
        frame = frame_pixels(canvas, roi.frame_pts or 0)
        cut = frame[round(top) : round(top + height), round(left) : round(left + width)]
        image = np.asarray(cv2.resize(cut, size, interpolation=cv2.INTER_AREA), np.uint8)
    else:
        with canvas_slide_open(canvas) as slide:
            image = slide.read_region((left, top), (width, height), size)
    ring = roi.geometry["coordinates"][0]
    if roi.geometry["type"] == "MultiPolygon":
        ring = max((part[0] for part in roi.geometry["coordinates"]), key=len)
    corners = (np.array(ring, np.float64) - [left, top]) * [size[0] / width, size[1] / height]
    return image, corners


class VideoFrames:
    """Frames of a video: a sample of all, then those around the surest."""

    def __init__(self, canvas: Canvas) -> None:
        self._path = storage.resolve(canvas.pixels_path)
        self._table = frame_table(canvas_video(canvas))
        self.searched = 0

    def __enter__(self) -> VideoFrames:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: no file is open."""

    def search(self, find: Finder) -> list[Any]:
        """Ranked hits of both passes."""
        step = -(-len(self._table) // SAMPLED_FRAMES)
        count = -(-len(self._table) // step)
        frames = iter_frames(self._path, step=step, table=self._table)
        hits = list(find(((i, rgb) for i, _, rgb in frames), count))
        self.searched = count
        near = sorted({i for hit in hits[:2] for i in self._around(hit.key, step)})
        hits += find(((i, self.image(i)) for i in near), len(near))
        self.searched += len(near)
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))[:MAX_HITS]

    def image(self, index: int) -> ImageU8:
        return read_frame(self._path, int(self._table.pts[index]), table=self._table)

    def names(self, index: int) -> FrameNames:
        """Index, PTS and time."""
        pts = int(self._table.pts[index])
        time_s = round(pts * self._table.time_base_s, 6)
        return {"index": index, "pts": pts, "time_s": time_s}

    def on_canvas(self, hit: PlaceFound) -> ArrayF64:
        """The outline in pixels of the video."""
        return hit.outline_frame

    def _around(self, index: int, step: int) -> list[int]:
        reach = np.linspace(-step, step, NEARBY_FRAMES + 2)[1:-1].round().astype(int)
        indexes = {index + int(by) for by in reach} - {index}
        return [i for i in indexes if 0 <= i < len(self._table) and i % step]


class ImageWindows:
    """Overlapping windows of a mosaic or still, scaled so that a few dozen cover it."""

    def __init__(self, canvas: Canvas) -> None:
        self._slide = canvas_slide_open(canvas)
        self._down = max(1.0, max(canvas.width_px, canvas.height_px) / IMAGE_LARGEST_PX)
        width, height = canvas.width_px / self._down, canvas.height_px / self._down
        self._size = (min(WINDOW_PX, round(width)), min(WINDOW_PX, round(height)))
        self._corners = [
            (x, y) for y in _starts(height, self._size[1]) for x in _starts(width, self._size[0])
        ]
        self.searched = len(self._corners)

    def __enter__(self) -> ImageWindows:
        return self

    def __exit__(self, *_: object) -> None:
        self._slide.close()

    def search(self, find: Finder) -> list[Any]:
        """The surest window of each spot: neighbours that overlap find the same."""
        windows = ((i, self.image(i)) for i in range(len(self._corners)))
        hits: list[Any] = []
        for hit in find(windows, len(self._corners)):
            middle = self.on_canvas(hit).mean(axis=0)
            reach = np.ptp(self.on_canvas(hit), axis=0).max() / 2
            hit_centres = [self.on_canvas(other).mean(axis=0) for other in hits]
            if all(np.linalg.norm(middle - other) > reach for other in hit_centres):
                hits.append(hit)
        return hits

    def image(self, index: int) -> ImageU8:
        x, y = self._corners[index]
        size_l0 = (self._size[0] * self._down, self._size[1] * self._down)
        return self._slide.read_region((x * self._down, y * self._down), size_l0, self._size)

    def names(self, index: int) -> FrameNames:
        """A mosaic or still has no time."""
        return {"index": None, "pts": None, "time_s": None}

    def on_canvas(self, hit: PlaceFound) -> ArrayF64:
        """The outline in level-0 pixels of the image."""
        outline: ArrayF64 = (hit.outline_frame + np.array(self._corners[hit.key])) * self._down
        return outline


def _starts(length: float, window: int) -> list[int]:
    last = max(0, round(length) - window)
    return sorted({*range(0, last, WINDOW_STEP_PX), last})
