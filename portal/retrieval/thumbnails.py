"""A small picture of an ROI with its outline, made once for each of its versions."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from ml.errors import MlError
from ml.imaging.slides import open_slide
from ml.imaging.videos import read_frame
from ml.types import ImageU8
from portal.annotations.models import Label, Roi
from portal.archive import storage
from portal.archive.models import CanvasKind
from portal.core.errors import NotFoundError

WIDTH_PX, HEIGHT_PX = 320, 240  # 4:3, sharp on a card of the result page
_MARGIN_SHARE = 0.18  # of the region on each side: the outline stands free
_LEAST_PX = 24.0
"""A window is at least so many level-0 pixels wide: a dot is shown with its surroundings."""
_LINE_PX, _HALO_PX = 2, 4  # the halo shows on both sides of the line
_SMOOTH = 2  # drawn so much larger, then reduced: no jagged line
_UNLABELLED = "#ffd400"
_QUALITY = 85  # of JPEG: no visible blocks

Window = tuple[float, float, float, float]
"""left, top, width, height in level-0 pixels."""


def roi_thumbnail(roi: Roi) -> bytes:
    """JPEG of the ROI, 320 x 240, read from the cache or made and kept there.

    Raises:
        NotFoundError: the canvas' pixels cannot be read.
    """
    color = roi.label.color if isinstance(roi.label, Label) else _UNLABELLED
    name = f"{roi.pk}-{roi.version}-{color.lstrip('#')}.jpg"
    path = storage.cache_folder(roi.canvas_id) / "rois" / name
    try:
        return path.read_bytes()
    except FileNotFoundError:
        pass
    try:
        data = _render(roi, color)
    except (MlError, OSError) as error:
        raise NotFoundError("The pixels of this ROI cannot be read.") from error
    storage.file_publish(path, data)
    return data


def window_of(roi: Roi) -> Window:
    """The ROI's bounds with a margin, in the thumbnail's aspect."""
    width, height = roi.right - roi.left, roi.bottom - roi.top
    width = max(width * (1 + 2 * _MARGIN_SHARE), _LEAST_PX)
    height = max(height * (1 + 2 * _MARGIN_SHARE), _LEAST_PX * HEIGHT_PX / WIDTH_PX)
    width = max(width, height * WIDTH_PX / HEIGHT_PX)
    height = width * HEIGHT_PX / WIDTH_PX
    return (
        (roi.left + roi.right - width) / 2,
        (roi.top + roi.bottom - height) / 2,
        width,
        height,
    )


def _render(roi: Roi, color: str) -> bytes:
    window = window_of(roi)
    image = Image.fromarray(_pixels(roi, window))
    image.paste(*_outline(roi, window, color))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=_QUALITY)
    return stream.getvalue()


def _pixels(roi: Roi, window: Window) -> ImageU8:
    """(HEIGHT_PX, WIDTH_PX, 3) of the window, white outside of the canvas."""
    path: Path = storage.resolve(roi.canvas.pixels_path)
    left, top, width, height = window
    if roi.canvas.kind != CanvasKind.VIDEO:
        with open_slide(path) as slide:
            return slide.read_region((left, top), (width, height), (WIDTH_PX, HEIGHT_PX))
    frame = Image.fromarray(read_frame(path, roi.frame_pts or 0))
    scaled = frame.transform(
        (WIDTH_PX, HEIGHT_PX),
        Image.Transform.EXTENT,
        (left, top, left + width, top + height),
        resample=Image.Resampling.BICUBIC,
        fillcolor=(255, 255, 255),
    )
    return np.asarray(scaled)


def _outline(
    roi: Roi, window: Window, color: str
) -> tuple[Image.Image, tuple[int, int], Image.Image]:
    """What ``Image.paste`` takes: the line in its colour over a halo, readable on any tissue."""
    size = (WIDTH_PX * _SMOOTH, HEIGHT_PX * _SMOOTH)
    layer = Image.new("RGBA", size, (0, 0, 0, 0))
    draw = ImageDraw.Draw(layer)
    rings = [_to_thumbnail(ring, window) for ring in _rings(roi)]
    for fill, width_px in (("#14181fc0", _HALO_PX), (color, _LINE_PX)):
        for ring in rings:
            draw.line(ring, fill=fill, width=width_px * _SMOOTH, joint="curve")
    small = layer.resize((WIDTH_PX, HEIGHT_PX), Image.Resampling.BOX)
    return small.convert("RGB"), (0, 0), small.getchannel("A")


def _rings(roi: Roi) -> Iterator[list[list[float]]]:
    coordinates = roi.geometry["coordinates"]
    for polygon in [coordinates] if roi.geometry["type"] == "Polygon" else coordinates:
        yield from polygon


def _to_thumbnail(ring: list[list[float]], window: Window) -> list[tuple[float, float]]:
    left, top, width, _ = window
    scale = WIDTH_PX * _SMOOTH / width
    return [((x - left) * scale, (y - top) * scale) for x, y in ring]
