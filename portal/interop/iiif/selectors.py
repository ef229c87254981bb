"""Canvases that the IIIF Image API serves."""

from __future__ import annotations

import uuid

from portal.archive.models import Canvas, CanvasKind
from portal.archive.selectors.canvases import canvas_get
from portal.core.errors import NotFoundError
from portal.labs.models import User


def image_get(*, user: User, canvas_id: uuid.UUID) -> Canvas:
    """A canvas with a plane of pixels; ``NotFoundError`` for videos too."""
    canvas = canvas_get(user=user, canvas_id=canvas_id)
    if canvas.kind == CanvasKind.VIDEO or not canvas.levels:
        raise NotFoundError("This canvas is a video: it has frames, not an image.")
    return canvas
