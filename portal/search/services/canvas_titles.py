"""Copies of a canvas' title in jobs and reports."""

from __future__ import annotations

import uuid

from django.db.models import Q

from portal.annotations.models import Roi
from portal.archive.models import CanvasKind
from portal.jobs.models import Job
from portal.search.models import Query, Report, ReportRegion

MAX_NAME = 200  # length of a job's column
_JOINED = " on "  # "Region on Section 3"


def canvas_title_update(canvas_id: uuid.UUID, before: str, now: str) -> None:
    """Update the title of a canvas in its jobs and reports.

    The only change that reports allow: the old title may have named a patient.
    """
    rois = Roi.all_objects.filter(canvas=canvas_id).order_by().values("pk")
    queries = Query.all_objects.filter(canvas=canvas_id).order_by().values("pk")
    of_canvas = Q(target_type="roi", target_id__in=rois) | Q(
        target_type="query", target_id__in=queries
    )
    Job.objects.filter(of_canvas).update(target_name=now[:MAX_NAME])
    for report in Report.all_objects.filter(canvas=canvas_id).defer("picture"):
        name, content = _replace_title(report.name, before, now), report.content
        facts = [
            [title, now if title in CanvasKind.labels and text == before else text]
            for title, text in content["facts"]
        ]
        fields = {"name": name[:300], "content": content | {"facts": facts}}
        Report.all_objects.filter(pk=report.pk).update(**fields)
    for region in ReportRegion.all_objects.filter(canvas=canvas_id).defer("picture"):
        content = region.content | {"image": now}
        ReportRegion.all_objects.filter(pk=region.pk).update(content=content)


def _replace_title(name: str, before: str, now: str) -> str:
    """Replace the title where it is the whole name or the end of one."""
    is_whole, ends = name == before, name.endswith(f"{_JOINED}{before}")
    return name.removesuffix(before) + now if is_whole or ends else name
