"""Job that renders the pictures of a report."""

from __future__ import annotations

import uuid

from portal.core.errors import NotFoundError
from portal.core.tasks import JobContext, JobResult, job_task
from portal.search.selectors.reports import PICTURES_KIND, rois_to_show
from portal.search.thumbnails.regions import SMALL, Scale, roi_thumbnail


@job_task(PICTURES_KIND, title="Make the pictures of a report", retry_on=(OSError,))
def report_pictures(context: JobContext, *, roi_ids: list[str], width: str) -> JobResult:
    """Render the pictures of regions at one scale into the thumbnail cache.

    Each is published separately, so that a restarted job finds the finished ones.
    """
    rois = rois_to_show([uuid.UUID(roi_id) for roi_id in roi_ids])
    unreadable = 0
    for number, roi in enumerate(rois):
        context.progress(number, len(rois), "pictures")
        try:
            roi_thumbnail(roi, SMALL, Scale.of_tag(width))
        except NotFoundError:  # shown in the report
            unreadable += 1
    return {"pictures": len(rois) - unreadable, "unreadable": unreadable}
