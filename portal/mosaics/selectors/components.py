"""Reads of a mosaic's components, and of what the scope sees of a frame."""

from __future__ import annotations

from ml.types import ArrayF64
from portal.core.errors import ConflictError, NotFoundError
from portal.mosaics.models import Mosaic, MosaicComponent
from portal.mosaics.planes import view_polygon


def view_of(mosaic: Mosaic) -> ArrayF64:
    """(P, 2): what the scope sees of a frame, frame pixels."""
    canvas = mosaic.video.canvas
    width_px, height_px = (canvas.width_px, canvas.height_px) if canvas else (1, 1)
    return view_polygon(mosaic.view_outline, width_px=width_px, height_px=height_px)


def component_of(mosaic: Mosaic, component: int) -> MosaicComponent:
    """One component of a ready mosaic, from those read with it.

    Raises:
        ConflictError: the mosaic is not ready.
        NotFoundError: it has fewer components.
    """
    components = list(mosaic.components.all())
    if not components:
        raise ConflictError("The mosaic is not ready yet.", code="mosaic-not-ready")
    for found in components:
        if found.index == component:
            return found
    known = f"it has {len(components)}, counted from 0"
    raise NotFoundError(f"The mosaic has no component {component}; {known}.")
