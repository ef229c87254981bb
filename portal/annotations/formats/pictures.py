"""PNG: a region or a window of the canvas with its outlines and a scale bar."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ml.errors import MlError
from ml.imaging.slides.slide import open_slide
from portal.annotations.colors import halo_of
from portal.annotations.formats.types import ExportChoices, Plane, Rois
from portal.annotations.marks import rings_of
from portal.annotations.models import Label, Roi
from portal.archive.selectors.frames import stored_frame
from portal.archive.storage import files as storage
from portal.core.errors import InvalidInputError, NotFoundError

MAX_SIDE_PX = 4096
"""Largest side of a picture (35 cm at 300 dpi); it is drawn in memory, within the request."""
_MARGIN = 0.12  # around a region, of its longer side
_MIN_WINDOW_PX = 32.0  # of the window on the canvas: a dot is shown with its surroundings
_SMOOTH = 2  # supersampling, against jagged lines
_INK, _PLATE, _UNLABELLED = "#ffffff", "#14181f", "#ffd400"

Window = tuple[float, float, float, float]
"""left, top, width, height in level-0 pixels."""


class Picture:
    """Pixels, outlines in the colours of their labels, and a scale bar where the scale is known."""

    name, title = "png", "Picture with scale bar (PNG)"
    suffix, media_type = ".png", "image/png"
    for_video = True

    def write(self, rois: Rois, plane: Plane, choices: ExportChoices) -> Iterator[bytes]:
        """The whole canvas, a window of it, or one region with a margin."""
        chosen = next((roi for roi in rois() if roi.pk == choices.roi_id), None)
        if choices.roi_id is not None and chosen is None:
            raise NotFoundError("There is no such region on this canvas.")
        window = _window(plane, choices, chosen)
        frame = (chosen.frame_index, chosen.frame_pts) if chosen else choices.frame
        scale = min(choices.width_px / window[2], MAX_SIDE_PX / max(window[2:]))
        size = (max(1, round(window[2] * scale)), max(1, round(window[3] * scale)))
        picture = Image.fromarray(window_pixels(plane, window, size, frame[1]))
        rois_inside = [
            roi
            for roi in rois()
            if _is_in(roi, window) and (not plane.is_video or roi.frame_index == frame[0])
        ]
        _draw(picture, rois_inside, window)
        if plane.mpp_x:
            _scale_bar(picture, plane.mpp_x * window[2] / size[0])
        stream = io.BytesIO()
        picture.save(stream, "PNG")
        return iter([stream.getvalue()])


def _window(plane: Plane, choices: ExportChoices, roi: Roi | None) -> Window:
    if roi is not None:
        margin = _MARGIN * max(roi.right - roi.left, roi.bottom - roi.top, _MIN_WINDOW_PX)
        left, top = roi.left - margin, roi.top - margin
        right, bottom = roi.right + margin, roi.bottom + margin
    else:
        left, top, right, bottom = choices.window or (0.0, 0.0, plane.width_px, plane.height_px)
    left, top = max(left, 0.0), max(top, 0.0)
    right, bottom = min(right, float(plane.width_px)), min(bottom, float(plane.height_px))
    if right - left < 1 or bottom - top < 1:
        raise InvalidInputError("The window lies outside the canvas, or has no area.")
    return left, top, right - left, bottom - top


def _is_in(roi: Roi, window: Window) -> bool:
    left, top, width, height = window
    return (
        roi.left <= left + width
        and roi.right >= left
        and roi.top <= top + height
        and roi.bottom >= top
    )


def window_pixels(
    plane: Plane, window: Window, size: tuple[int, int], pts: int | None
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """A window of the canvas (of a video: of the frame of this PTS) at a size (width, height).

    Raises:
        NotFoundError: the pixels cannot be read.
    """
    left, top, width, height = window
    try:
        if not plane.is_video:
            with open_slide(
                storage.resolve(plane.pixels_path), display_range=plane.display_range
            ) as slide:
                return slide.read_region((left, top), (width, height), size)
        frame = Image.fromarray(stored_frame(plane.pixels_path, plane.frames_path, pts or 0))
    except (MlError, OSError) as error:
        raise NotFoundError("The pixels of this canvas cannot be read.") from error
    box = (left, top, left + width, top + height)
    return np.asarray(frame.resize(size, Image.Resampling.BICUBIC, box=box))


def _draw(picture: Image.Image, rois: list[Roi], window: Window) -> None:
    """Lines over a halo: readable on any tissue."""
    scale = _SMOOTH * picture.width / window[2]
    line_px = max(2, round(picture.width / 400)) * _SMOOTH
    layer = Image.new("RGBA", (picture.width * _SMOOTH, picture.height * _SMOOTH), (0, 0, 0, 0))
    draw = ImageDraw.Draw(layer)
    for roi in rois:
        color = roi.label.color if isinstance(roi.label, Label) else _UNLABELLED
        halo = halo_of(color) + "a0"
        for ring in rings_of(roi.geometry):
            points = [((x - window[0]) * scale, (y - window[1]) * scale) for x, y in ring]
            if len(points) == 1:
                draw.circle(points[0], 3 * line_px, fill=halo)
                draw.circle(points[0], 2 * line_px, fill=color)
                continue
            draw.line(points, fill=halo, width=2 * line_px, joint="curve")
            draw.line(points, fill=color, width=line_px, joint="curve")
    small = layer.resize(picture.size, Image.Resampling.BOX)
    picture.paste(small.convert("RGB"), (0, 0), small.getchannel("A"))


def bar_um(max_um: float) -> float:
    """The longest round length (1, 2 or 5 times a power of ten) that is not above this one."""
    power = 10.0 ** math.floor(math.log10(max_um))
    return max(step * power for step in (1, 2, 5) if step * power <= max_um)


def _scale_bar(picture: Image.Image, um_px: float) -> None:
    """A bar of a round length, at most a quarter of the width, at the bottom left."""
    length_um = bar_um(um_px * picture.width / 4)
    length_px = length_um / um_px
    unit = picture.width / 100
    height, pad = max(3.0, 0.6 * unit), max(8.0, 1.5 * unit)
    number, name = (length_um / 1000, "mm") if length_um >= 1000 else (length_um, "um")
    size_px = max(12.0, 2.2 * unit)
    font = ImageFont.load_default(size=size_px)
    ascent, descent = size_px, 0.3 * size_px
    bottom = picture.height - pad
    width = max(length_px, font.getlength(f"{number:g} {name}"))
    plate = (0.5 * pad, bottom - height - ascent - descent - 0.5 * pad, width + 1.5 * pad)
    layer = Image.new("RGBA", picture.size, (0, 0, 0, 0))
    draw = ImageDraw.Draw(layer)
    draw.rounded_rectangle((*plate, bottom + 0.5 * pad), radius=pad / 3, fill=_PLATE + "c0")
    draw.rectangle((pad, bottom - height, pad + length_px, bottom), fill=_INK)
    baseline = (pad, bottom - height - descent)
    draw.text(baseline, f"{number:g} {name}", font=font, fill=_INK, anchor="ls")
    if name == "um":
        _tail(draw, (pad + font.getlength(f"{number:g} "), baseline[1]), size_px)
    picture.paste(layer.convert("RGB"), (0, 0), layer.getchannel("A"))


def _tail(draw: ImageDraw.ImageDraw, at: tuple[float, float], size_px: float) -> None:
    """The stem below the line that makes a u a micro sign, which Pillow's font lacks."""
    x, baseline = at[0] + 0.075 * size_px, at[1]
    draw.rectangle(
        (x, baseline - 0.3 * size_px, x + 0.07 * size_px, baseline + 0.2 * size_px), _INK
    )
