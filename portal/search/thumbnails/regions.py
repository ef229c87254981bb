"""Thumbnails of ROIs with their outlines, cached by version."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from PIL import Image, ImageDraw

from ml.errors import MlError
from ml.types import ImageU8
from portal.annotations.colors import halo_of
from portal.annotations.marks import rings_of
from portal.annotations.models import Label, Roi
from portal.archive.models import Canvas, CanvasKind
from portal.archive.selectors.frames import frame_pixels
from portal.archive.selectors.pixels import canvas_slide_open
from portal.archive.storage import files as storage
from portal.core.errors import NotFoundError


@dataclass(frozen=True, slots=True)
class ThumbnailSize:
    """Format of a region's thumbnail, 4:3.

    Attributes:
        margin_share: Margin on each side, as a share of the region's size.
        line_px: Width of the outline; its halo is twice as wide.
    """

    name: str
    width_px: int
    height_px: int
    margin_share: float
    line_px: int


SMALL = ThumbnailSize("", 320, 240, 0.18, 2)  # cards
LARGE = ThumbnailSize("-large", 960, 720, 0.75, 4)  # review, with surroundings
CLOSE = ThumbnailSize("-close", 960, 720, 0.1, 3)  # patches of a region
PICTURES = {"small": SMALL, "large": LARGE, "close": CLOSE}
WIDTH_PX, HEIGHT_PX = SMALL.width_px, SMALL.height_px
_MIN_PX = 24.0
"""Smallest width of a window in level-0 pixels, so that dots are shown with surroundings."""
_SMOOTH = 2  # supersampling of the outline
_UNLABELLED = "#ffd400"
_QUALITY = 85  # JPEG, without visible blocks

Window = tuple[float, float, float, float]
"""left, top, width, height in level-0 pixels."""


class Showable(Protocol):
    """Content of a thumbnail: an ROI, or the area of a canvas that a query shows."""

    @property
    def left(self) -> float:
        """Left bound in level-0 pixels, like the other bounds."""

    @property
    def top(self) -> float: ...
    @property
    def right(self) -> float: ...
    @property
    def bottom(self) -> float: ...
    @property
    def geometry(self) -> Any:
        """GeoJSON of its outline; None if it has none."""

    @property
    def canvas(self) -> Canvas:
        pass

    @property
    def frame_pts(self) -> int | None:
        """Frame of a video; None otherwise."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Width shared by the pictures of several ROIs for visual comparison.

    Widths are powers of two, so that few pictures of an ROI are made.

    Attributes:
        width: Width of the window.
        unit: "um", or "px" of level 0 if the pixel size is unknown.
    """

    width: int
    unit: str

    @property
    def tag(self) -> str:
        """Form used in URLs and file names: ``256um``."""
        return f"{self.width}{self.unit}"

    @property
    def text(self) -> str:
        """Width for people: "256 µm", "1.02 mm"."""
        if self.unit == "um" and self.width >= 1000:
            return f"{self.width / 1000:.3g} mm"
        return f"{self.width} {'µm' if self.unit == 'um' else 'px'}"

    @classmethod
    def of_tag(cls, tag: str) -> Scale | None:
        """Scale of a tag, or None."""
        return _SCALES.get(tag)

    def key(self, roi: Showable) -> str:
        """Part of a file name; depends on the pixel size."""
        return f"{self.tag}-{self.width_px(roi) or 0:.0f}px"

    def width_px(self, roi: Showable) -> float | None:
        """Width of the window in level-0 pixels; None if the canvas lacks the unit."""
        mpp = roi.canvas.mpp_x
        if self.unit == "px":
            return self.width if mpp is None else None
        return None if mpp is None else self.width / mpp


WIDTHS = tuple(
    2**power for power in range(4, 18)
)  # from 16 um, a nucleus, to 13 cm, more than a slide
_BETWEEN = 4  # finer steps per doubling, for single pictures
_SCALES = {
    scale.tag: scale
    for unit in ("um", "px")
    for scale in (
        Scale(round(width * 2 ** (step / _BETWEEN)), unit)
        for width in WIDTHS
        for step in range(_BETWEEN)
    )
}


def scale_of(roi: Showable, picture: ThumbnailSize = SMALL) -> Scale:
    """Smallest scale whose window holds the ROI with its margin.

    Args:
        picture: With ``CLOSE``, scales in finer steps are used, to show less of the surroundings.
    """
    mpp = roi.canvas.mpp_x
    unit, per_px = ("px", 1.0) if mpp is None else ("um", mpp)
    width = window_of(roi, picture)[2] * per_px
    fine = picture is CLOSE
    steps = [
        step for step in _SCALES.values() if step.unit == unit and (fine or step.width in WIDTHS)
    ]
    return next((scale for scale in steps if scale.width >= width), steps[-1])


def roi_thumbnail(roi: Roi, picture: ThumbnailSize = SMALL, scale: Scale | None = None) -> bytes:
    """JPEG of the ROI, read from the cache or rendered and cached.

    Args:
        scale: Width of the window; None, or a unit that the canvas lacks, for the ROI's own width.
    Raises:
        NotFoundError: The pixels of the canvas cannot be read.
    """
    path = _path(roi, picture, scale)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        pass
    width_px = scale.width_px(roi) if scale else None
    try:
        data = region_render(roi, _color(roi), picture, window_of(roi, picture, width_px))
    except (MlError, OSError) as error:
        raise NotFoundError("The pixels of this region cannot be read.") from error
    storage.file_publish(path, data)
    return data


def thumbnail_is_cached(
    roi: Roi, picture: ThumbnailSize = SMALL, scale: Scale | None = None
) -> bool:
    """True if ``roi_thumbnail`` has nothing to render."""
    return _path(roi, picture, scale).exists()


def _path(roi: Roi, picture: ThumbnailSize, scale: Scale | None) -> Path:
    tag = f"-{scale.key(roi)}" if scale and scale.width_px(roi) else ""
    name = f"{roi.pk}-{roi.version}-{_color(roi).lstrip('#')}{picture.name}{tag}.jpg"
    return storage.cache_folder(roi.canvas_id) / "rois" / name


def _color(roi: Roi) -> str:
    return roi.label.color if isinstance(roi.label, Label) else _UNLABELLED


def window_of(
    roi: Showable, picture: ThumbnailSize = SMALL, width_px: float | None = None
) -> Window:
    """Window in the picture's aspect: the ROI with a margin, or ``width_px`` around it."""
    aspect = picture.width_px / picture.height_px
    if width_px is not None:
        height_px = width_px / aspect
        x, y = (roi.left + roi.right) / 2, (roi.top + roi.bottom) / 2
        return x - width_px / 2, y - height_px / 2, width_px, height_px
    width, height = roi.right - roi.left, roi.bottom - roi.top
    width = max(width * (1 + 2 * picture.margin_share), _MIN_PX)
    height = max(height * (1 + 2 * picture.margin_share), _MIN_PX / aspect)
    width = max(width, height * aspect)
    height = width / aspect
    return (
        (roi.left + roi.right - width) / 2,
        (roi.top + roi.bottom - height) / 2,
        width,
        height,
    )


def region_render(roi: Showable, color: str, picture: ThumbnailSize, window: Window) -> bytes:
    """JPEG of a window with the region's outline."""
    image = Image.fromarray(_pixels(roi, window, picture))
    image.paste(*_outline(roi, window, color, picture))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=_QUALITY)
    return stream.getvalue()


def _pixels(roi: Showable, window: Window, picture: ThumbnailSize) -> ImageU8:
    """Pixels (height_px, width_px, 3) of the window, white outside the canvas."""
    left, top, width, height = window
    size = (picture.width_px, picture.height_px)
    if roi.canvas.kind != CanvasKind.VIDEO:
        with canvas_slide_open(roi.canvas) as slide:
            return slide.read_region((left, top), (width, height), size)
    frame = Image.fromarray(frame_pixels(roi.canvas, roi.frame_pts or 0))
    scaled = frame.transform(
        size,
        Image.Transform.EXTENT,
        (left, top, left + width, top + height),
        resample=Image.Resampling.BICUBIC,
        fillcolor=(255, 255, 255),
    )
    return np.asarray(scaled)


def _outline(
    roi: Showable, window: Window, color: str, picture: ThumbnailSize
) -> tuple[Image.Image, tuple[int, int], Image.Image]:
    """Arguments of ``Image.paste``: the coloured line over a halo, readable on any tissue."""
    size = (picture.width_px, picture.height_px)
    layer = Image.new("RGBA", (size[0] * _SMOOTH, size[1] * _SMOOTH), (0, 0, 0, 0))
    draw = ImageDraw.Draw(layer)
    scale = layer.width / window[2]
    outline = rings_of(roi.geometry) if roi.geometry else []
    rings = [_to_picture(ring, window, scale) for ring in outline]
    for fill, width_px in ((halo_of(color) + "c0", 2 * picture.line_px), (color, picture.line_px)):
        for ring in rings:
            draw.line(ring, fill=fill, width=width_px * _SMOOTH, joint="curve")
    small = layer.resize(size, Image.Resampling.BOX)
    return small.convert("RGB"), (0, 0), small.getchannel("A")


def _to_picture(ring: list[list[float]], window: Window, scale: float) -> list[tuple[float, float]]:
    left, top, _, _ = window
    return [((x - left) * scale, (y - top) * scale) for x, y in ring]
