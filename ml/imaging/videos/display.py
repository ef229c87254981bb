"""Display geometry of videos: orientation and pixel aspect ratio, as browsers show them.

``DisplayGeometry`` is read once, from the first frame, and ``frame_rgb`` applies it to every frame:
stills, thumbnails, filmstrips, embeddings, mosaics and renditions have the same pixel grid.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from av.sidedata.sidedata import Type as SideDataType
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ml.errors import CorruptFileError
from ml.imaging.limits import require_frame_size
from ml.imaging.videos.colours import rgb_pixels
from ml.imaging.videos.containers import decode_frames, open_video
from ml.types import DisplayGeometry, ImageU8

_MAX_ASPECT = 4
"""Anamorphic recordings stay below 2.2 and above 0.45; beyond 4 the header is wrong."""
_MAX_SKEW = 0.1  # of a quarter turn: sine over cosine


def geometry_of_file(path: str | Path) -> DisplayGeometry:
    """Display geometry of a video, by its first frame.

    Raises:
        NoVideoStreamError, CorruptFileError, TooLargeError: as ``probe_video``.
    """
    with open_video(path) as (container, stream):
        first = next(decode_frames(container, stream), None)
        if first is None:
            raise CorruptFileError("no frame of the video can be decoded")
        return display_geometry(stream, first[1])[0]


def display_geometry(
    stream: VideoStream, frame: VideoFrame
) -> tuple[DisplayGeometry, tuple[str, ...]]:
    """Display geometry of a stream and its first frame, and warnings for the user.

    The pixel aspect ratio of the container takes precedence over that of the codec, as in FFmpeg.
    Ratios outside 1:4 to 4:1 are ignored, and so are display matrices other than quarter turns and
    mirror images.

    Raises:
        TooLargeError: the frame is too large once its pixels are square.
    """
    warnings: list[str] = []
    aspect = stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio or Fraction(1)
    if not Fraction(1, _MAX_ASPECT) <= aspect <= _MAX_ASPECT:
        warnings.append(
            f"the file states pixels of {aspect.numerator}:{aspect.denominator} (width to height), "
            "which no camera records; they are shown square"
        )
        aspect = Fraction(1)
    orientation = _orientation(frame)
    if orientation is None:
        warnings.append(
            "the file states a display matrix that is no quarter turn or mirror image; it is shown "
            "as it is stored"
        )
    is_mirrored, turns = orientation or (False, 0)
    geometry = DisplayGeometry(
        stored_width_px=frame.width,
        stored_height_px=frame.height,
        aspect_width=aspect.numerator,
        aspect_height=aspect.denominator,
        is_mirrored=is_mirrored,
        quarter_turns=turns,
    )
    require_frame_size(*geometry.size)
    return geometry, tuple(warnings)


def frame_rgb(frame: VideoFrame, geometry: DisplayGeometry) -> ImageU8:
    """(H, W, 3) uint8 RGB of a frame in display pixels; H and W are those of ``geometry.size``.

    A frame of another size than the first one (the stream changes half-way) is scaled to it.
    """
    rgb = rgb_pixels(frame, geometry.stretched_size)
    if geometry.is_mirrored:
        rgb = rgb[:, ::-1]
    return np.ascontiguousarray(np.rot90(rgb, geometry.quarter_turns))


def _orientation(frame: VideoFrame) -> tuple[bool, int] | None:
    """(is mirrored left to right, quarter turns anticlockwise after that); None for other matrices.

    The matrix maps a stored point (x, y) to (a x + c y, b x + d y), x right and y down: see
    FFmpeg's libavutil/display.h.
    """
    side_data: Any = frame.side_data  # its stub names no display matrix
    matrix = side_data.get(SideDataType.DISPLAYMATRIX)
    if matrix is None:
        return False, 0
    a, b, _, c, d = np.frombuffer(bytes(matrix), "=i4")[:5].tolist()
    major, minor = max(abs(c), abs(d)), min(abs(c), abs(d))
    determinant = a * d - b * c
    if not determinant or minor > _MAX_SKEW * major:
        return None
    turns = (0 if d > 0 else 2) if abs(d) > abs(c) else (1 if c > 0 else 3)
    return determinant < 0, turns
