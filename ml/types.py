"""Shared value types. Frozen dataclasses cross every seam; arrays are documented by shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

ImageU8 = npt.NDArray[np.uint8]
ArrayF32 = npt.NDArray[np.float32]
ArrayF64 = npt.NDArray[np.float64]
ArrayI64 = npt.NDArray[np.int64]
ArrayBool = npt.NDArray[np.bool_]

JsonObject = dict[str, Any]
"""A JSON document at a boundary: a standard, a file, a serializer or a schema says its shape."""

Progress = Callable[[int, int, str], None]
"""``progress(done, total, phase)``: called often; may raise ``CancelledError`` to stop the work."""


def no_progress(done: int, total: int, phase: str) -> None:
    """The default ``Progress``: does nothing."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a canvas' tile grid; index 0 is level 0, the finest.

    Attributes:
        width_px, height_px: size of the level in its own pixels.
        downsample: level-0 pixels per pixel of this level (1.0 at level 0).
        tile_width_px, tile_height_px: the file's own tile grid.
        stored: False if the level is computed from a finer one.
    """

    width_px: int
    height_px: int
    downsample: float
    tile_width_px: int
    tile_height_px: int
    stored: bool = True


@dataclass(frozen=True, slots=True)
class DisplayRange:
    """The stored values that are shown as black and as white; between them shades are linear.

    ``low`` is black and may be the larger one: then large values are dark.
    """

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SlideInfo:
    """Properties of a slide or still, without anything that could identify a patient.

    Attributes:
        mpp_x, mpp_y: microns per level-0 pixel, or None if the file does not say.
        properties: vendor metadata that passed the allow-list, nothing else.
        display_range: by which pixels are read, None where they are stored in 8 bits.
    """

    width_px: int
    height_px: int
    levels: tuple[Level, ...]
    mpp_x: float | None
    mpp_y: float | None
    vendor: str
    objective_power: float | None = None
    properties: dict[str, str] = field(default_factory=dict)
    display_range: DisplayRange | None = None


@dataclass(frozen=True, slots=True)
class SeekPoint:
    """A packet of a video that decoding can begin at.

    Attributes:
        packet: its number in the file's order, from 0.
        position, size: where it begins in the file and how long it is, in bytes.
        time: its time stamp as stored, which a seek by time takes.
    """

    packet: int
    position: int
    size: int
    time: int


@dataclass(frozen=True, slots=True)
class FrameTable:
    """Every decodable frame of a video, in presentation order.

    Attributes:
        pts: (N,) int64, presentation time stamps in units of ``time_base_s``, strictly ascending:
            the file's own, but for parts whose clock starts again, which follow the part before.
        key: (N,) bool, True at key frames.
        time_base_s: seconds per PTS unit.
        packet: (N,) int64, number of the packet that holds the frame, in the file's order.
        seek_points: (K, 4) int64, ascending, one ``SeekPoint`` a row: packets of key frames.
    """

    pts: ArrayI64
    key: ArrayBool
    time_base_s: float
    packet: ArrayI64
    seek_points: ArrayI64

    @property
    def time_s(self) -> ArrayF64:
        """(N,) float64: presentation times in seconds (pts * time base)."""
        return self.pts.astype(np.float64) * self.time_base_s

    def index_of(self, pts: int) -> int | None:
        """Index of the frame with exactly this time stamp; None if there is none."""
        index = int(np.searchsorted(self.pts, pts))
        return index if index < len(self) and int(self.pts[index]) == pts else None

    def __len__(self) -> int:
        return int(self.pts.shape[0])


@dataclass(frozen=True, slots=True)
class DisplayGeometry:
    """Mapping from a video's stored frames to the displayed picture.

    A stored frame is stretched to square pixels (it only grows), then mirrored left to right, then
    turned anticlockwise. A canvas, and all that is drawn on it, has the display's pixels.

    Attributes:
        stored_width_px, stored_height_px: size of a frame in the file.
        aspect_width, aspect_height: width to height of a stored pixel, the sample aspect ratio.
        is_mirrored: the picture is mirrored left to right before it is turned.
        quarter_turns: anticlockwise, 0 to 3.
    """

    stored_width_px: int
    stored_height_px: int
    aspect_width: int = 1
    aspect_height: int = 1
    is_mirrored: bool = False
    quarter_turns: int = 0

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the displayed picture, px."""
        return self._rotate(self.stretched_size)

    @property
    def file_size(self) -> tuple[int, int]:
        """Width and height of a frame as other programs extract it: upright, not stretched."""
        return self._rotate((self.stored_width_px, self.stored_height_px))

    @property
    def stretched_size(self) -> tuple[int, int]:
        """Width and height of a frame with square pixels before it is turned."""
        width, height = self.stored_width_px, self.stored_height_px
        if self.aspect_width >= self.aspect_height:
            return round(width * self.aspect_width / self.aspect_height), height
        return width, round(height * self.aspect_height / self.aspect_width)

    @property
    def sample_aspect_ratio(self) -> str:
        """Width to height of a stored pixel, such as "64:45"."""
        return f"{self.aspect_width}:{self.aspect_height}"

    @property
    def rotation_deg(self) -> int:
        """Clockwise rotation from the stored to the displayed frame: 0, 90, 180 or 270."""
        return -90 * self.quarter_turns % 360

    def _rotate(self, size: tuple[int, int]) -> tuple[int, int]:
        return size[::-1] if self.quarter_turns % 2 else size


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """Properties of a video. ``warnings`` are sentences for the user (a cut file, odd time
    stamps)."""

    geometry: DisplayGeometry
    codec: str
    container: str
    frames: FrameTable
    duration_s: float
    fps: float
    browser_playable: bool
    warnings: tuple[str, ...] = ()

    @property
    def width_px(self) -> int:
        """Width of the displayed picture."""
        return self.geometry.size[0]

    @property
    def height_px(self) -> int:
        """Height of the displayed picture."""
        return self.geometry.size[1]


@dataclass(frozen=True, slots=True)
class Keypoints:
    """Key points of one image.

    Attributes:
        xy: (N, 2) float32, pixels, x right, y down, pixel centres at integer coordinates.
        response: (N,) float32, larger is stronger.
        size_px: (N,) float32, diameter of the support.
        angle_deg: (N,) float32, orientation in [0, 360), -1 where unknown.
    """

    xy: ArrayF32
    response: ArrayF32
    size_px: ArrayF32
    angle_deg: ArrayF32

    def __len__(self) -> int:
        return int(self.xy.shape[0])


@dataclass(frozen=True, slots=True)
class Matches:
    """Corresponding points of two images, after rejection.

    Attributes:
        xy_a, xy_b: (M, 2) float32, pixels.
        score: (M,) float32, larger is better.
    """

    xy_a: ArrayF32
    xy_b: ArrayF32
    score: ArrayF32

    def __len__(self) -> int:
        return int(self.xy_a.shape[0])


@dataclass(frozen=True, slots=True)
class Transform:
    """A planar transform mapping points of a to points of b.

    Attributes:
        matrix: (3, 3) float64, normalised to ``matrix[2, 2] == 1``.
        inliers: (N,) bool over the matches it was estimated from.
    """

    matrix: ArrayF64
    inliers: ArrayBool
