"""Reads for other systems. Each begins from what the person may see."""

from __future__ import annotations

import uuid

from portal.annotations.models import Roi
from portal.archive.models import Canvas, CanvasKind, Case
from portal.archive.selectors import canvas_get, canvas_list, case_get
from portal.core.errors import NotFoundError
from portal.labs.models import User

ROIS_OF_A_PAGE = 1000  # some 2 MB of outlines
CANVASES_OF_A_CASE = 500  # a manifest of 600 kB; the list of canvases over REST has all


def image_get(*, user: User, canvas_id: uuid.UUID) -> Canvas:
    """A canvas with a plane of pixels; ``NotFoundError`` for videos too."""
    canvas = canvas_get(user=user, canvas_id=canvas_id)
    if canvas.kind == CanvasKind.VIDEO or not canvas.levels:
        raise NotFoundError("This canvas is a video: it has frames, not an image.")
    return canvas


def case_canvases(*, user: User, case_id: uuid.UUID) -> tuple[Case, list[Canvas]]:
    """A case and what it shows, oldest first."""
    case = case_get(user=user, case_id=case_id)
    canvases = canvas_list(user=user).filter(case=case)
    canvases = canvases.order_by("created_at", "id")
    return case, list(canvases[:CANVASES_OF_A_CASE])


def roi_page(*, user: User, canvas: Canvas, number: int) -> tuple[list[Roi], bool]:
    """One page of the live ROIs of a canvas, and whether it is the last; ``number`` from 1."""
    rois = (
        Roi.objects.visible_to(user)
        .live()
        .filter(canvas=canvas)
        .select_related("label")
        .defer("foreign", "track")
        .order_by("created_at", "id")
    )
    start = (number - 1) * ROIS_OF_A_PAGE
    found = list(rois[start : start + ROIS_OF_A_PAGE + 1])
    return found[:ROIS_OF_A_PAGE], len(found) <= ROIS_OF_A_PAGE
