"""A new title of a canvas, wherever retrieval keeps the old one."""

from __future__ import annotations

import uuid

from django.db.models import Q

from portal.annotations.models import Roi
from portal.archive.models import CanvasKind
from portal.jobs.models import Job
from portal.retrieval.models import Query, Report, ReportRegion

NAME_MOST = 200  # as the column of a job
_JOINED = " on "  # "Region on Section 3"


def titles_follow(canvas_id: uuid.UUID, before: str, now: str) -> None:
    """Give jobs and reports of a canvas its present title.

    A report is never changed except for this: the old title may have named a patient.
    """
    rois = Roi.everything.filter(canvas=canvas_id).order_by().values("pk")
    queries = Query.everything.filter(canvas=canvas_id).order_by().values("pk")
    theirs = Q(target_type="roi", target_id__in=rois) | Q(
        target_type="query", target_id__in=queries
    )
    Job.objects.filter(theirs).update(target_name=now[:NAME_MOST])
    for report in Report.everything.filter(canvas=canvas_id).defer("picture"):
        name, said = _renamed(report.name, before, now), report.content
        facts = [
            [title, now if title in CanvasKind.labels and text == before else text]
            for title, text in said["facts"]
        ]
        kept = {"name": name[:300], "content": said | {"facts": facts}}
        Report.everything.filter(pk=report.pk).update(**kept)
    for region in ReportRegion.everything.filter(canvas=canvas_id).defer("picture"):
        content = region.content | {"image": now}
        ReportRegion.everything.filter(pk=region.pk).update(content=content)


def _renamed(name: str, before: str, now: str) -> str:
    """The title itself, and a name that ends with it."""
    is_whole, ends = name == before, name.endswith(f"{_JOINED}{before}")
    return name.removesuffix(before) + now if is_whole or ends else name
