"""Reads of the ledger."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import (
    BooleanField,
    Case,
    Count,
    DurationField,
    Exists,
    F,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Now

from portal.core.errors import NotFoundError
from portal.jobs.models import ENDED, Job, JobState, WorkerSign
from portal.labs.models import User

REAPER_QUEUES = "-"  # what a reaper signs with in the place of queues: it serves none
WORKER_SILENT_AFTER = timedelta(seconds=45)  # four signs, one each 10 s, did not come


_TARGETS: dict[str, Callable[[], QuerySet[Any]]] = {}


def target_register(target_type: str, shown: Callable[[], QuerySet[Any]]) -> None:
    """Let a higher app say which of its things are shown: jobs name no others.

    Call from ``AppConfig.ready``; ``shown`` gives those that lie in no bin.
    """
    _TARGETS[target_type] = shown


def _hides_name() -> Case:
    """True for a job of something that is in the bin, or gone."""
    gone = [
        When(target_type=kind, then=~Exists(shown().filter(pk=OuterRef("target_id"))))
        for kind, shown in _TARGETS.items()
    ]
    return Case(*gone, default=Value(False), output_field=BooleanField())


def job_list(*, user: User, state: str = "", kind: str = "") -> QuerySet[Job]:
    """The jobs this person may see, newest first."""
    mine = Job.objects.visible_to(user).select_related("created_by", "lab")
    jobs: QuerySet[Job] = mine.annotate(hides_name=_hides_name())
    if state in JobState.values:
        jobs = jobs.filter(state=state)
    if kind:
        jobs = jobs.filter(kind=kind)
    return jobs


def job_get(*, user: User, job_id: uuid.UUID) -> Job:
    """One job, or ``NotFoundError``."""
    job = job_list(user=user).filter(pk=job_id).first()
    if job is None:
        raise NotFoundError("No such job.")
    return job


def job_latest_for(
    *, target_type: str, target_ids: list[uuid.UUID], user: User | None = None
) -> dict[uuid.UUID, Job]:
    """The newest job of each target, in one query.

    Args:
        user: only jobs that this person may see; None: the caller has checked that.
    """
    jobs = Job.objects.visible_to(user) if user else Job.objects.all()
    jobs = jobs.filter(target_type=target_type, target_id__in=target_ids)
    return {job.target_id: job for job in jobs.order_by("created_at") if job.target_id}


def workers_alive() -> QuerySet[WorkerSign]:
    """Workers heard of lately."""
    return _heard_of().exclude(queues=REAPER_QUEUES)


def reapers_alive() -> QuerySet[WorkerSign]:
    """Reapers heard of lately."""
    return _heard_of().filter(queues=REAPER_QUEUES)


def _heard_of() -> QuerySet[WorkerSign]:
    return WorkerSign.objects.filter(seen_at__gt=Now() - WORKER_SILENT_AFTER)


@dataclass(frozen=True, slots=True)
class QueueLength:
    """Jobs of a kind that wait, and for how long the first of them has."""

    kind: str
    queue: str
    count: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class EndedFigures:
    """Jobs of a kind that ended so, and how long they took together."""

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
    """Of every kind that waits now; what waits for its next attempt is not late."""
    now = database_now()
    rows = (
        Job.objects.filter(state=JobState.QUEUED)
        .filter(Q(not_before=None) | Q(not_before__lte=Now()))
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
