"""Pictures that a report keeps: of its regions, at the scale of what was searched with."""

from __future__ import annotations

from portal.annotations.models import Roi
from portal.core.errors import NotFoundError
from portal.labs.models import User
from portal.retrieval.models import Query, Report
from portal.retrieval.selectors import SimilarResult
from portal.retrieval.services import report_create
from portal.retrieval.thumbnails.queries import query_picture, query_scale, query_window
from portal.retrieval.thumbnails.regions import SMALL, Scale, roi_thumbnail, scale_of, window_of

_Kept = tuple[bytes | None, float | None]
"""JPEG, None where the pixels cannot be read; its width in microns, None where not known."""


def report_keep(result: SimilarResult, user: User) -> Report:
    """Freeze an answer with its pictures, all as wide as that of what was searched with.

    Raises:
        InvalidInputError: as ``report_create`` does.
    """
    roi, query = result.query.roi, result.query.asked
    scale = scale_of(roi) if roi else query_scale(query) if query else None
    picture = _of_roi(roi, scale) if roi else _of_query(query) if query else (None, None)
    return report_create(
        result=result, user=user, picture=picture, picture_of=lambda hit: _of_roi(hit, scale)
    )


def _of_roi(roi: Roi, scale: Scale | None) -> _Kept:
    width_px = window_of(roi, SMALL, scale.width_px(roi) if scale else None)[2]
    mpp = roi.canvas.mpp_x
    try:
        return roi_thumbnail(roi, SMALL, scale), width_px * mpp if mpp else None
    except NotFoundError:
        return None, None


def _of_query(query: Query) -> _Kept:
    mpp = query.canvas.mpp_x if query.canvas else query.picture_mpp
    try:
        picture = query_picture(query)
    except NotFoundError:
        return None, None
    return picture, query_window(query, SMALL, query_scale(query))[2] * mpp if mpp else None
