"""Videos with exact colours, pixel shapes and orientations, made plane by plane."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from ml.types import ArrayF64, ImageU8

COLOURS = ((200, 30, 30), (30, 160, 60), (40, 60, 180), (190, 110, 100))
"""One a quarter of a frame, left to right, or as a grid of two by two."""
WEIGHTS = {"601": (0.299, 0.114), "709": (0.2126, 0.0722), "2020": (0.2627, 0.0593)}
"""Weights of red and blue in luma: ITU-R BT.601, BT.709 and BT.2020."""

Matrix = tuple[int, int, int, int]
MATRICES: dict[str, Matrix] = {
    "as stored": (1, 0, 0, 1),
    "mirrored left to right": (-1, 0, 0, 1),
    "mirrored top to bottom": (1, 0, 0, -1),
    "turned by half": (-1, 0, 0, -1),
    "turned clockwise": (0, 1, -1, 0),
    "turned anticlockwise": (0, -1, 1, 0),
    "transposed": (0, 1, 1, 0),
    "transposed across": (0, -1, -1, 0),
}
"""a, b, c, d: a stored point (x, y), y down, is shown at (a x + c y, b x + d y)."""


@dataclass(frozen=True, slots=True)
class Tags:
    """Codes of H.273; 2 and a range of 0 state nothing."""

    matrix: int = 2
    primaries: int = 2
    transfer: int = 2
    range: int = 0


def patches(size: tuple[int, int]) -> ArrayF64:
    """(H, W, 3) float64, 0 to 1: ``COLOURS`` left to right."""
    row = np.repeat(np.array(COLOURS), size[0] // 4, axis=0) / 255
    return np.repeat(row[None], size[1], axis=0)


def corners(size: tuple[int, int] = (320, 240)) -> ImageU8:
    """``COLOURS`` in the corners: top left, top right, bottom left, bottom right."""
    grid = np.array(COLOURS, np.uint8).reshape(2, 2, 3)
    return grid.repeat(size[1] // 2, 0).repeat(size[0] // 2, 1)


def disc(size: tuple[int, int], aspect: Fraction, diameter: float) -> ImageU8:
    """A white disc in the middle, round once pixels of that aspect are square."""
    y, x = np.mgrid[: size[1], : size[0]] + 0.5
    across, down = max(float(aspect), 1.0), max(1 / float(aspect), 1.0)
    is_in = np.hypot((x - size[0] / 2) * across, (y - size[1] / 2) * down) < diameter / 2
    return np.where(is_in[..., None], 240, 20).astype(np.uint8).repeat(3, 2)


def yuv_frame(
    rgb: ArrayF64, matrix: str, pix_fmt: str = "yuv420p", *, is_full: bool = False
) -> av.VideoFrame:
    """The frame of R'G'B' by the equations of the standard, in 8 or (yuv420p10le) 10 bits."""
    red, blue = WEIGHTS[matrix]
    luma = rgb @ [red, 1 - red - blue, blue]
    chroma = [(rgb[..., at] - luma) / (2 * (1 - w)) for at, w in ((2, blue), (0, red))]
    bits = 10 if "10" in pix_fmt else 8
    top, unit = 2**bits - 1, 2 ** (bits - 8)
    scale = (top, top, 0) if is_full else (219 * unit, 224 * unit, 16 * unit)
    planes = [luma * scale[0] + scale[2], *(c * scale[1] + 128 * unit for c in chroma)]
    rows = 1 if "422" in pix_fmt else 2
    frame = av.VideoFrame(rgb.shape[1], rgb.shape[0], pix_fmt)
    for at, (plane, values) in enumerate(zip(frame.planes, planes, strict=True)):
        sampled = values if at == 0 else values[::rows, ::2]
        stored = np.rint(sampled).astype(np.uint8 if bits == 8 else np.uint16)
        lines = np.zeros((plane.height, plane.line_size // stored.itemsize), stored.dtype)
        lines[:, : plane.width] = stored
        plane.update(lines.tobytes())
    return frame


def write_video(
    path: Path,
    frame: av.VideoFrame,
    codec: str,
    *,
    tags: Tags | None = None,
    aspect: Fraction | None = None,
    matrix: Matrix | None = None,
    options: dict[str, str] | None = None,
    count: int = 6,
    rate: int = 25,
) -> Path:
    """The same frame ``count`` times."""
    tags = tags or Tags()
    with av.open(str(path), "w") as target:
        stream: Any = target.add_stream(codec, rate=rate, options=options or QUALITY.get(codec, {}))
        stream.width, stream.height, stream.pix_fmt = frame.width, frame.height, frame.format.name
        context = stream.codec_context
        context.colorspace, context.color_primaries = tags.matrix, tags.primaries
        context.color_trc, context.color_range = tags.transfer, tags.range
        frame.colorspace, frame.color_primaries = tags.matrix, tags.primaries
        frame.color_trc, frame.color_range = tags.transfer, tags.range
        if aspect is not None:
            context.sample_aspect_ratio = aspect
        if matrix is not None:
            a, b, c, d = (value << 16 for value in matrix)
            stream.set_display_matrix([a, b, 0, c, d, 0, 0, 0, 1 << 30])
        for number in range(count):
            frame.pts, frame.time_base = number, Fraction(1, rate)
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    return path


QUALITY = {
    "libx264": {"qp": "4", "bf": "0"},
    "libx265": {"x265-params": "qp=4:log-level=error"},
    "libvpx-vp9": {"crf": "4", "b": "0", "deadline": "realtime", "cpu-used": "8"},
    "libvpx": {"crf": "4", "b": "20M", "deadline": "realtime"},
    "mjpeg": {"qmin": "1", "qmax": "1"},
    "mpeg4": {"qmin": "1", "qmax": "1"},
    "mpeg2video": {"qmin": "1", "qmax": "1"},
}


def middles(rgb: ImageU8) -> list[tuple[int, ...]]:
    """The colours in the middles of four quarters, left to right."""
    height, width = rgb.shape[:2]
    return [tuple(rgb[height // 2, width * at // 8].tolist()) for at in (1, 3, 5, 7)]


def off_by(found: list[tuple[int, ...]]) -> int:
    """The largest difference to ``COLOURS`` in any channel."""
    return int(np.abs(np.array(found, int) - np.array(COLOURS)).max())
