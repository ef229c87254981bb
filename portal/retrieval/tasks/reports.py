"""Pictures that a report waits for."""

from __future__ import annotations

import uuid

from portal.core.errors import NotFoundError
from portal.core.tasks import JobContext, JobResult, task
from portal.retrieval import selectors
from portal.retrieval.selectors import PICTURES_KIND
from portal.retrieval.thumbnails import SMALL, Scale, roi_thumbnail


@task(PICTURES_KIND, title="Make the pictures of a report", retry_on=(OSError,))
def report_pictures(context: JobContext, *, roi_ids: list[str], width: str) -> JobResult:
    """Make the pictures of regions at one scale, where the portal keeps those it shows.

    Each is published by itself, so that whoever continues finds those that are made.
    """
    rois = selectors.rois_to_show([uuid.UUID(roi_id) for roi_id in roi_ids])
    unreadable = 0
    for number, roi in enumerate(rois):
        context.progress(number, len(rois), "pictures")
        try:
            roi_thumbnail(roi, SMALL, Scale.named(width))
        except NotFoundError:  # the report says so
            unreadable += 1
    return {"pictures": len(rois) - unreadable, "unreadable": unreadable}
