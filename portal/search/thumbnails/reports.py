"""Pictures stored in a report, at the scale of the query."""

from __future__ import annotations

from portal.annotations.models import Roi
from portal.core.errors import NotFoundError
from portal.jobs.models import Job
from portal.labs.models import User
from portal.search.models import Query, Report
from portal.search.selectors.similar_cases import SimilarResult
from portal.search.services.reports import REPORT_HITS, report_create, report_pictures_make
from portal.search.thumbnails.queries import query_picture, query_scale, query_window
from portal.search.thumbnails.regions import (
    SMALL,
    Scale,
    roi_thumbnail,
    scale_of,
    thumbnail_is_cached,
    window_of,
)

MAX_IN_REQUEST = 4
"""Pictures rendered within the request; one of a video takes up to a second."""

_ScaledPicture = tuple[bytes | None, float | None]
"""JPEG, None if the pixels cannot be read; its width in um, None if unknown."""


def report_save(result: SimilarResult, user: User, *, interpretation: str = "") -> Report | Job:
    """Create a report with its pictures, all at the scale of the query.

    Returns:
        The report, or the job that renders its pictures if more than ``MAX_IN_REQUEST`` are
        missing. After viewing the results, most are cached.
    Raises:
        InvalidInputError: See ``report_create``.
    """
    roi, query = result.query.roi, result.query.stored_query
    scale = scale_of(roi) if roi else query_scale(query) if query else None
    rois = [hit.roi for hit in result.hits[:REPORT_HITS]]
    if sum(not thumbnail_is_cached(pictured, SMALL, scale) for pictured in rois) > MAX_IN_REQUEST:
        job = report_pictures_make(
            lab_id=result.query.scope.lab_id,
            user=user,
            roi_ids=[pictured.pk for pictured in rois],
            width=scale.tag if scale else "",
        )
        if job is not None:
            return job
    picture = _roi_picture(roi, scale) if roi else _query_picture(query) if query else (None, None)
    return report_create(
        result=result,
        user=user,
        picture=picture,
        picture_of=lambda hit: _roi_picture(hit, scale),
        interpretation=interpretation,
    )


def _roi_picture(roi: Roi, scale: Scale | None) -> _ScaledPicture:
    width_px = window_of(roi, SMALL, scale.width_px(roi) if scale else None)[2]
    mpp = roi.canvas.mpp_x
    try:
        return roi_thumbnail(roi, SMALL, scale), width_px * mpp if mpp else None
    except NotFoundError:
        return None, None


def _query_picture(query: Query) -> _ScaledPicture:
    mpp = query.canvas.mpp_x if query.canvas else query.picture_mpp
    try:
        picture = query_picture(query)
    except NotFoundError:
        return None, None
    return picture, query_window(query, SMALL, query_scale(query))[2] * mpp if mpp else None
