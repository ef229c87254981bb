"""Figures over the whole ledger, for ``/metrics``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Count, DurationField, F, Min, Sum

from portal.jobs.models import ENDED, Job, JobState
from portal.jobs.selectors.turns import jobs_due


@dataclass(frozen=True, slots=True)
class QueueLength:
    """Jobs of a kind that wait, and for how long the first of them has."""

    kind: str
    queue: str
    count: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class EndedFigures:
    """Jobs of a kind that ended in this state, and how long they took together."""

    kind: str
    state: str
    count: int
    seconds: float


def database_now() -> datetime:
    """What time it is for the ledger."""
    statement = {
        "postgresql": "SELECT statement_timestamp()",
        "sqlite": "SELECT strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')",
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(statement)
        (found,) = cursor.fetchone()
    return datetime.fromisoformat(found) if isinstance(found, str) else found


def queue_lengths() -> list[QueueLength]:
    """For every kind that waits now; what waits for its next attempt is not late."""
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
    """Kind and number of jobs at work."""
    running = Job.objects.filter(state=JobState.RUNNING).order_by()
    return list(running.values_list("kind").annotate(Count("pk")))


def ended_figures() -> list[EndedFigures]:
    """By kind and state, over all that is in the ledger."""
    took = Sum(F("finished_at") - F("started_at"), output_field=DurationField())
    rows = (
        Job.objects.filter(state__in=ENDED)
        .order_by()
        .values("kind", "state")
        .annotate(count=Count("pk"), took=took)
    )
    return [
        EndedFigures(
            kind=row["kind"],
            state=row["state"],
            count=row["count"],
            seconds=row["took"].total_seconds() if row["took"] else 0.0,
        )
        for row in rows
    ]


def failure_counts() -> list[tuple[str, str, int]]:
    """Kind, code and number of jobs that failed."""
    failed = Job.objects.filter(state=JobState.FAILED).order_by()
    return list(failed.values_list("kind", "error_code").annotate(Count("pk")))
