"""The pixels of a canvas as they are shown."""

from __future__ import annotations

from ml.imaging.slides.slide import SlideImage, open_slide
from portal.archive.models import Canvas
from portal.archive.storage import files as storage


def canvas_slide_open(canvas: Canvas) -> SlideImage:
    """The slide or still behind a canvas, in its display range. Raises as ``open_slide``."""
    return open_slide(storage.resolve(canvas.pixels_path), display_range=canvas.shown_range)
