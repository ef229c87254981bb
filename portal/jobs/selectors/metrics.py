"""Counts and durations over all jobs, for ``/metrics``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Count, DurationField, F, Min, Sum

from portal.jobs.models import ENDED_STATES, Job, JobState
from portal.jobs.selectors.scheduling import jobs_due


@dataclass(frozen=True, slots=True)
class QueueLength:
    """Number of due jobs of a kind, and the age of the oldest."""

    kind: str
    queue: str
    count: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class EndedJobMetrics:
    """Number of jobs of a kind that ended in a state, and the sum of their durations."""

    kind: str
    state: str
    count: int
    seconds: float


def database_now() -> datetime:
    """Current time of the database."""
    statement = {
        "postgresql": "SELECT statement_timestamp()",
        "sqlite": "SELECT strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')",
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(statement)
        (now,) = cursor.fetchone()
    return datetime.fromisoformat(now) if isinstance(now, str) else now


def queue_lengths() -> list[QueueLength]:
    """Queue lengths by kind; jobs that pause before a retry do not count."""
    now = database_now()
    rows = (
        jobs_due()
        .order_by()
        .values("kind", "queue")
        .annotate(count=Count("pk"), oldest=Min("created_at"))
    )
    return [
        QueueLength(
            kind=row["kind"],
            queue=row["queue"],
            count=row["count"],
            oldest_s=max(0.0, (now - row["oldest"]).total_seconds()),
        )
        for row in rows
    ]


def running_counts() -> list[tuple[str, int]]:
    """Kind and number of running jobs."""
    running = Job.objects.filter(state=JobState.RUNNING).order_by()
    return list(running.values_list("kind").annotate(Count("pk")))


def ended_job_metrics() -> list[EndedJobMetrics]:
    """Number and total duration of all stored jobs, by kind and end state."""
    took = Sum(F("finished_at") - F("started_at"), output_field=DurationField())
    rows = (
        Job.objects.filter(state__in=ENDED_STATES)
        .order_by()
        .values("kind", "state")
        .annotate(count=Count("pk"), took=took)
    )
    return [
        EndedJobMetrics(
            kind=row["kind"],
            state=row["state"],
            count=row["count"],
            seconds=row["took"].total_seconds() if row["took"] else 0.0,
        )
        for row in rows
    ]


def failure_counts() -> list[tuple[str, str, int]]:
    """Kind, error code and number of failed jobs."""
    failed_jobs = Job.objects.filter(state=JobState.FAILED).order_by()
    return list(failed_jobs.values_list("kind", "error_code").annotate(Count("pk")))
