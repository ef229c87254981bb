"""Pages of ROIs."""

from __future__ import annotations

from portal.annotations.models import Roi
from portal.archive.models import Canvas
from portal.labs.models import User

PAGE_SIZE = 1000  # some 2 MB of outlines


def roi_page(*, user: User, canvas: Canvas, number: int) -> tuple[list[Roi], bool]:
    """A page of the live ROIs of a canvas, and whether it is the last; ``number`` from 1."""
    rois = (
        Roi.objects.visible_to(user)
        .live()
        .filter(canvas=canvas)
        .select_related("label")
        .defer("foreign", "track")
        .order_by("created_at", "id")
    )
    start = (number - 1) * PAGE_SIZE
    page = list(rois[start : start + PAGE_SIZE + 1])
    return page[:PAGE_SIZE], len(page) <= PAGE_SIZE
