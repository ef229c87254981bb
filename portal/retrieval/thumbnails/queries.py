"""What a query looks like, beside its hits: a piece of a canvas, a frame, or a picture."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image
from shapely.geometry import shape

from ml.errors import MlError
from portal.archive import storage
from portal.archive.models import Canvas
from portal.core.errors import NotFoundError
from portal.retrieval.models import Query
from portal.retrieval.thumbnails.regions import SMALL, Scale, region_render, scale_of, window_of

COLOR = "#00e5ff"  # of its outline: no label's, and clear of tissue
_QUALITY = 85  # of JPEG, as thumbnails


@dataclass(frozen=True, slots=True)
class Shown:
    """What a query shows of a canvas; see ``thumbnails.Region``."""

    left: float
    top: float
    right: float
    bottom: float
    geometry: Any
    canvas: Canvas
    frame_pts: int | None


def query_region(query: Query) -> Shown | None:
    """Its area, or all of its canvas; None where it is on none."""
    canvas = query.canvas
    if canvas is None:
        return None
    bounds = (0.0, 0.0, float(canvas.width_px), float(canvas.height_px))
    if query.geometry:
        bounds = shape(query.geometry).bounds
    return Shown(*bounds, query.geometry, canvas, query.frame_pts)


def query_scale(query: Query) -> Scale | None:
    """How wide its hits are shown to be compared with it; None: each as it is."""
    region = query_region(query)
    if region is not None:  # how wide all of a canvas is says nothing of its hits
        return scale_of(region) if region.geometry else None
    if query.picture_mpp is None:
        return None
    wanted = query.width_px * query.picture_mpp
    scales = (Scale.named(f"{2**power}um") for power in range(4, 18))
    return next((scale for scale in scales if scale and scale.width >= wanted), None)


def query_picture(query: Query) -> bytes:
    """JPEG, 320 x 240, at the scale of ``query_scale``.

    Raises:
        NotFoundError: there is none (examples, a picture not decoded yet), or it cannot be read.
    """
    region, scale = query_region(query), query_scale(query)
    if region is None:
        return _of_picture(query, scale)
    # One name a query: it is never changed.
    path = storage.cache_folder(region.canvas.pk) / "queries" / f"{query.pk}.jpg"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        pass
    if region.geometry:
        window = window_of(region, SMALL, scale.width_px(region) if scale else None)
    else:
        window = window_of(region, replace(SMALL, margin_share=0.0))
    try:
        data = region_render(region, COLOR, SMALL, window)
    except (MlError, OSError) as error:
        raise NotFoundError("The pixels of this query cannot be read.") from error
    storage.file_publish(path, data)
    return data


def _of_picture(query: Query, scale: Scale | None) -> bytes:
    if not query.picture:
        raise NotFoundError("This query has no picture.")
    with Image.open(io.BytesIO(bytes(query.picture)), formats=("JPEG",)) as stored:
        image = stored.convert("RGB")
    shown_um = scale.width if scale and query.picture_mpp else None
    shown_px = shown_um / query.picture_mpp if shown_um and query.picture_mpp else image.width
    per_px = max(shown_px / SMALL.width_px, image.height / SMALL.height_px)
    if shown_um:
        per_px = shown_px / SMALL.width_px
    size = (max(1, round(image.width / per_px)), max(1, round(image.height / per_px)))
    page = Image.new("RGB", (SMALL.width_px, SMALL.height_px), "white")
    small = image.resize(size, Image.Resampling.LANCZOS)
    page.paste(small, ((page.width - size[0]) // 2, (page.height - size[1]) // 2))
    stream = io.BytesIO()
    page.save(stream, "JPEG", quality=_QUALITY)
    return stream.getvalue()
