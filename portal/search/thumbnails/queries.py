"""Thumbnails of queries: an area of a canvas, a frame, or a picture."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image
from shapely.geometry import shape

from ml.errors import MlError
from portal.archive.models import Canvas
from portal.archive.storage import files as storage
from portal.core.errors import NotFoundError
from portal.search.models import Query
from portal.search.thumbnails.regions import (
    SMALL,
    WIDTHS,
    Scale,
    ThumbnailSize,
    Window,
    region_render,
    scale_of,
    window_of,
)

COLOR = "#00e5ff"  # outline; differs from labels and tissue
_QUALITY = 85  # JPEG, as for thumbnails


@dataclass(frozen=True, slots=True)
class QueryArea:
    """Area of a canvas for a query's thumbnail; see ``regions.Showable``."""

    left: float
    top: float
    right: float
    bottom: float
    geometry: Any
    canvas: Canvas
    frame_pts: int | None


def query_region(query: Query) -> QueryArea | None:
    """Area of the query, or its whole canvas; None without a canvas."""
    canvas = query.canvas
    if canvas is None:
        return None
    bounds = (0.0, 0.0, float(canvas.width_px), float(canvas.height_px))
    if query.geometry:
        bounds = shape(query.geometry).bounds
    return QueryArea(*bounds, query.geometry, canvas, query.frame_pts)


def query_scale(query: Query, picture: ThumbnailSize = SMALL) -> Scale | None:
    """Scale of the hits' thumbnails for comparison with the query; None: each at its own scale."""
    region = query_region(query)
    if region is not None:  # the width of a whole canvas is no scale for hits
        return scale_of(region, picture) if region.geometry else None
    if query.picture_mpp is None:
        return None
    width_um = query.width_px * query.picture_mpp
    scales = (Scale.of_tag(f"{width}um") for width in WIDTHS)
    return next((scale for scale in scales if scale and scale.width >= width_um), None)


def query_window(query: Query, picture: ThumbnailSize, scale: Scale | None) -> Window:
    """Window of a query's thumbnail, in level-0 pixels, or in pixels of the stored picture."""
    region = query_region(query)
    if region is None:
        return _window_of_picture(query, picture, scale)
    if region.geometry:
        return window_of(region, picture, scale.width_px(region) if scale else None)
    return window_of(region, replace(picture, margin_share=0.0))


def query_picture(
    query: Query, picture: ThumbnailSize = SMALL, scale: Scale | None = None
) -> bytes:
    """Thumbnail of a query as JPEG, 320 x 240 by default.

    Args:
        scale: None for the scale of ``query_scale``.
    Raises:
        NotFoundError: The query has no thumbnail (examples, a picture not decoded yet), or it
            cannot be read.
    """
    tag = f"{picture.name}-{scale.tag}" if scale else picture.name
    region, scale = query_region(query), scale or query_scale(query)
    window = query_window(query, picture, scale)
    if region is None:
        return _render_picture(query, picture, window)
    # Queries never change.
    path = storage.cache_folder(region.canvas.pk) / "queries" / f"{query.pk}{tag}.jpg"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        pass
    try:
        data = region_render(region, COLOR, picture, window)
    except (MlError, OSError) as error:
        raise NotFoundError("The pixels of this query cannot be read.") from error
    storage.file_publish(path, data)
    return data


def _window_of_picture(query: Query, picture: ThumbnailSize, scale: Scale | None) -> Window:
    aspect = picture.width_px / picture.height_px
    width = max(float(query.width_px), query.height_px * aspect)
    if scale and query.picture_mpp:
        width = scale.width / query.picture_mpp
    height = width / aspect
    return (query.width_px - width) / 2, (query.height_px - height) / 2, width, height


def _render_picture(query: Query, picture: ThumbnailSize, window: Window) -> bytes:
    if not query.picture:
        raise NotFoundError("This query has no picture.")
    with Image.open(io.BytesIO(bytes(query.picture)), formats=("JPEG",)) as stored:
        image = stored.convert("RGB")
    per_px = window[2] / picture.width_px
    size = (max(1, round(image.width / per_px)), max(1, round(image.height / per_px)))
    page = Image.new("RGB", (picture.width_px, picture.height_px), "white")
    small = image.resize(size, Image.Resampling.LANCZOS)
    page.paste(small, ((page.width - size[0]) // 2, (page.height - size[1]) // 2))
    stream = io.BytesIO()
    page.save(stream, "JPEG", quality=_QUALITY)
    return stream.getvalue()
