"""Propose the outline of the structure under a click; nothing is written."""

from __future__ import annotations

from dataclasses import dataclass

from ml.errors import BadInputError, NoTissueError
from ml.segmentation.propose import OutlineConfig, propose_outline
from portal.annotations.formats.pictures import Window, window_pixels
from portal.annotations.formats.types import plane_of
from portal.annotations.geometry import GeoJsonGeometry
from portal.annotations.rules import require_annotate
from portal.annotations.selectors.frames import FrameRef
from portal.archive.models import Canvas, Modality
from portal.core.errors import InvalidInputError
from portal.labs.models import User

Position = tuple[float, float]
MAX_SIDE_PX = OutlineConfig().work_px
"""Longest side of the window that is read and searched."""
"""Taken for stained tissue, as by the search."""


@dataclass(frozen=True, slots=True)
class ProposedOutlines:
    """Polygons in level-0 pixels, each inside the next, and the one to show first."""

    geometries: list[GeoJsonGeometry]
    likely: int


def outlines_propose(
    *,
    canvas: Canvas,
    user: User,
    xy_l0: tuple[float, float],
    window: Window,
    frame: FrameRef | None,
) -> ProposedOutlines:
    """Outlines around a point in a window of the canvas.

    Args:
        window: left, top, right, bottom of the visible area in level-0 pixels. It is cut to the
            canvas, and read at most ``MAX_SIDE_PX`` wide or high.
    Raises:
        ForbiddenError: the user may not draw.
        InvalidInputError: the point is outside or on glass, or no outline was found around it.
        NotFoundError: the pixels cannot be read.
    """
    require_annotate(user, canvas.lab_id)
    left, top = max(window[0], 0.0), max(window[1], 0.0)
    right, bottom = min(window[2], canvas.width_px), min(window[3], canvas.height_px)
    if not (left <= xy_l0[0] < right and top <= xy_l0[1] < bottom):
        raise InvalidInputError("The point lies outside the image or the window.")
    width, height = right - left, bottom - top
    scale = min(1.0, MAX_SIDE_PX / max(width, height))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    pts = frame.pts if frame else None
    pixels = window_pixels(plane_of(canvas), (left, top, width, height), size, pts)
    by_x, by_y = width / size[0], height / size[1]
    at = ((xy_l0[0] - left) / by_x, (xy_l0[1] - top) / by_y)
    signal = "haematoxylin" if canvas.modality == Modality.HISTOLOGY else "lightness"
    try:
        proposal = propose_outline(pixels, at, config=OutlineConfig(signal=signal))
    except NoTissueError as error:
        raise InvalidInputError("There is no tissue here.", code=error.code) from error
    except BadInputError as error:
        raise InvalidInputError(f"No outline: {error}.", code="no-outline") from error
    rings = [[[left + x * by_x, top + y * by_y] for x, y in ring] for ring in proposal.rings]
    polygons = [_polygon(ring) for ring in rings]
    return ProposedOutlines(polygons, proposal.likely)


def _polygon(ring: list[list[float]]) -> GeoJsonGeometry:
    points = [[round(x, 2), round(y, 2)] for x, y in ring]
    return {"type": "Polygon", "coordinates": [[*points, points[0]]]}
