"""Template filters for jobs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.text import capfirst

from portal.jobs.models import Job, JobState
from portal.jobs.selectors.estimates import WaitEstimate, time_left_s

register = template.Library()

# URL names instead of imports, because this app must not import those apps.
TARGET_PAGES = {
    "slide": "archive:slide_open",
    "video": "archive:video_open",
    "mosaic": "mosaics:mosaic_detail",
    "followup": "mosaics:followup_detail",
    "roi": "annotations:roi_open",
    "canvas": "archive:viewer",
}
UNITS = ("px", "s", "um", "mb")  # suffixes of keys of results
PILLS = {
    JobState.QUEUED: "pill--plain",
    JobState.RUNNING: "pill--busy",
    JobState.SUCCEEDED: "pill--ok",
    JobState.FAILED: "pill--bad",
    JobState.CANCELLED: "pill--warn",
}


@register.filter
def target_url(job: Job) -> str:
    """URL of the page of a job's target; empty if it has none."""
    name = TARGET_PAGES.get(job.target_type)
    if not name or not job.target_id:
        return ""
    try:
        return reverse(name, args=[job.target_id])
    except NoReverseMatch:
        return ""


@register.filter
def pill_class(job: Job) -> str:
    """CSS class for the state of a job; neutral for a success without a result."""
    return "pill--plain" if job.outcome else PILLS[JobState(job.state)]


@register.filter
def state_name(job: Job) -> str:
    """Label of the state, or the reason why a successful job has no result."""
    return job.outcome.capitalize() or job.get_state_display()


@register.filter
def wait_of(waits: Mapping[uuid.UUID, WaitEstimate] | str, job: Job) -> str:
    """Place of a job in its queue and time until it starts; empty if unknown."""
    wait = waits.get(job.pk) if isinstance(waits, Mapping) else None
    if wait is None:
        return ""
    place = "Next in the queue" if wait.position == 1 else f"Place {wait.position:,} in the queue"
    return place if wait.seconds is None else f"{place}, begins {_in_text(wait.seconds)}"


@register.filter
def time_left(job: Job) -> str:
    """Format the remaining time (``about 3 min left``); empty while unknown, and at the end."""
    seconds = time_left_s(job)
    return f"{about(seconds)} left" if seconds else ""


def _in_text(seconds: float) -> str:
    return "now" if seconds < 1 else f"in {about(seconds)}"


def about(seconds: float) -> str:
    """Round an estimate to one unit: ``about 40 s``, ``about 3 min``, ``about 2 h``."""
    if seconds < 55:
        return f"about {max(5, 5 * round(seconds / 5))} s"
    if seconds < 55 * 60:
        return f"about {max(1, round(seconds / 60))} min"
    return f"about {max(1, round(seconds / 3600))} h"


@register.filter
def result_name(key: str) -> str:
    """Format a key of a job's result: ``width_px`` as "Width (px)"."""
    words, _, unit = key.rpartition("_")
    name = f"{words} ({unit})" if words and unit in UNITS else key
    return capfirst(name.replace("_", " "))


@register.filter
def run_time(job: Job) -> str:
    """Time that a job ran or has been running."""
    if job.started_at is None:
        return "–"
    return duration((job.finished_at or timezone.now()) - job.started_at)


def duration(length: timedelta) -> str:
    """Format a duration: ``4.2 s``, ``3 min 07 s``, ``1 h 12 min``."""
    seconds = max(0.0, length.total_seconds())
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds_left = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds_left:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
