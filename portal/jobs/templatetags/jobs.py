"""What the job templates need: durations and the page of a job's target."""

from __future__ import annotations

from datetime import timedelta

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.text import capfirst

from portal.jobs.models import Job, JobState

register = template.Library()

# URL names, not imports: the apps that own these pages stand above this one.
TARGET_PAGES = {
    "slide": "archive:slide_open",
    "video": "archive:video_open",
    "mosaic": "mosaics:mosaic_detail",
    "followup": "mosaics:followup_detail",
    "roi": "annotations:roi_open",
}
UNITS = ("px", "s", "um", "mb")  # of a result, at the end of its key
PILLS = {
    JobState.QUEUED: "pill--plain",
    JobState.RUNNING: "pill--busy",
    JobState.SUCCEEDED: "pill--ok",
    JobState.FAILED: "pill--bad",
    JobState.CANCELLED: "pill--warn",
}


@register.filter
def target_url(job: Job) -> str:
    """Where the job's target can be looked at; empty where it has no page."""
    name = TARGET_PAGES.get(job.target_type)
    if not name or not job.target_id:
        return ""
    try:
        return reverse(name, args=[job.target_id])
    except NoReverseMatch:
        return ""


@register.filter
def pill_class(job: Job) -> str:
    """The colour of the state."""
    return PILLS[JobState(job.state)]


@register.filter
def result_name(key: str) -> str:
    """A key of a job's result as a page shows it: ``width_px`` as "Width (px)"."""
    words, _, unit = key.rpartition("_")
    name = f"{words} ({unit})" if words and unit in UNITS else key
    return capfirst(name.replace("_", " "))


@register.filter
def took(job: Job) -> str:
    """How long it ran, or has been running."""
    if job.started_at is None:
        return "–"
    return duration((job.finished_at or timezone.now()) - job.started_at)


def duration(length: timedelta) -> str:
    """``4.2 s``, ``3 min 07 s``, ``1 h 12 min``."""
    seconds = max(0.0, length.total_seconds())
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
