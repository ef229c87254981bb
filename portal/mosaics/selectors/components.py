"""Reads of a mosaic's components, and of the field of view in a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ml.geometry import FrameMaps
from ml.types import ArrayF64
from portal.core.errors import ConflictError, NotFoundError
from portal.mosaics.models import Mosaic, MosaicComponent
from portal.mosaics.planes import frame_maps, view_polygon


def view_of(mosaic: Mosaic) -> ArrayF64:
    """Outline (P, 2) of the field of view in a frame, in frame pixels."""
    width_px, height_px = _frame_size(mosaic)
    return view_polygon(mosaic.view_outline, width_px=width_px, height_px=height_px)


def maps_of(mosaic: Mosaic, rows: Sequence[Any], meshes: Sequence[Any]) -> FrameMaps:
    """The maps of frames to their component, of their transforms and meshes."""
    return frame_maps(rows, meshes, size_px=_frame_size(mosaic))


def _frame_size(mosaic: Mosaic) -> tuple[int, int]:
    canvas = mosaic.video.canvas
    return (canvas.width_px, canvas.height_px) if canvas else (1, 1)


def component_of(mosaic: Mosaic, component: int) -> MosaicComponent:
    """A component of a ready mosaic, from those read with it.

    Raises:
        ConflictError: the mosaic is not ready.
        NotFoundError: it has fewer components.
    """
    components = list(mosaic.components.all())
    if not components:
        raise ConflictError("The mosaic is not ready yet.", code="mosaic-not-ready")
    for row in components:
        if row.index == component:
            return row
    available = f"it has {len(components)}, counted from 0"
    raise NotFoundError(f"The mosaic has no component {component}; {available}.")
