"""Pictures that a report keeps: of its regions, at the scale of what was searched with."""

from __future__ import annotations

from portal.annotations.models import Roi
from portal.core.errors import NotFoundError
from portal.jobs.models import Job
from portal.labs.models import User
from portal.retrieval.models import Query, Report
from portal.retrieval.selectors import SimilarResult
from portal.retrieval.services import REPORT_HITS, report_create, report_pictures_make
from portal.retrieval.thumbnails.queries import query_picture, query_scale, query_window
from portal.retrieval.thumbnails.regions import (
    SMALL,
    Scale,
    roi_thumbnail,
    scale_of,
    thumbnail_is_kept,
    window_of,
)

AT_ONCE = 4
"""Pictures that are made while somebody waits: one of a video takes up to a second."""

_Kept = tuple[bytes | None, float | None]
"""JPEG, None if the pixels cannot be read; its width in microns, None if not known."""


def report_keep(result: SimilarResult, user: User) -> Report | Job:
    """Freeze an answer with its pictures, all as wide as that of what was searched with.

    Returns:
        The report, or the job that makes its pictures, where more than ``AT_ONCE`` are missing:
        whoever has looked at the answer has most of them.
    Raises:
        InvalidInputError: as ``report_create`` does.
    """
    roi, query = result.query.roi, result.query.asked
    scale = scale_of(roi) if roi else query_scale(query) if query else None
    rois = [hit.roi for hit in result.hits[:REPORT_HITS]]
    if sum(not thumbnail_is_kept(one, SMALL, scale) for one in rois) > AT_ONCE:
        job = report_pictures_make(
            lab_id=result.query.scope.lab_id,
            user=user,
            roi_ids=[one.pk for one in rois],
            width=scale.tag if scale else "",
        )
        if job is not None:
            return job
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
