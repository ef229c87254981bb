"""Another title of a canvas, wherever retrieval has the one before."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import Q

from portal.annotations.models import Roi
from portal.jobs.models import Job
from portal.retrieval.models import Query, Report, ReportRegion

NAME_MOST = 200  # as the column of a job
_JOINED = " on "  # "Region on Section 3"


def titles_follow(canvas_id: uuid.UUID, before: str, now: str) -> None:
    """Jobs and reports of a canvas say its present title.

    A report is never changed except for this: the title before may have named a patient.
    """
    rois = Roi.everything.filter(canvas=canvas_id).order_by().values("pk")
    queries = Query.everything.filter(canvas=canvas_id).order_by().values("pk")
    theirs = Q(target_type="roi", target_id__in=rois) | Q(
        target_type="query", target_id__in=queries
    )
    Job.objects.filter(theirs).update(target_name=now[:NAME_MOST])
    for report in Report.everything.filter(canvas=canvas_id).defer("picture"):
        name, content = (_renamed(part, before, now) for part in (report.name, report.content))
        Report.everything.filter(pk=report.pk).update(name=name[:300], content=content)
    for region in ReportRegion.everything.filter(canvas=canvas_id).defer("picture"):
        content = _renamed(region.content, before, now)
        ReportRegion.everything.filter(pk=region.pk).update(content=content)


def _renamed(value: Any, before: str, now: str) -> Any:
    """The title itself, and texts that end with it, in whatever holds them."""
    if isinstance(value, dict):
        return {key: _renamed(one, before, now) for key, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, before, now) for one in value]
    if value == before:
        return now
    if isinstance(value, str) and value.endswith(f"{_JOINED}{before}"):
        return value.removesuffix(before) + now
    return value
