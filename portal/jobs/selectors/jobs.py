"""Reads of jobs and workers."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db.models import BooleanField, Case, Exists, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Now

from portal.core.errors import NotFoundError
from portal.core.registry import Registry
from portal.core.tasks import REGISTRY, internal_kinds
from portal.jobs.models import Job, JobState, WorkerHeartbeat
from portal.labs.models import User

REAPER_QUEUES = "-"  # queues in the heartbeat of a reaper, which serves none
WORKER_SILENT_AFTER = timedelta(seconds=45)  # four missed heartbeats, one each 10 s
WEEK = timedelta(days=7)
ME = "me"
JOB_TARGETS: Registry[str, Callable[[User], QuerySet[Any]]] = Registry()
"""Objects by target type whose names a person may read; jobs hide the names of all others."""


def _hides_name(user: User) -> Case:
    """True for a job whose target is in the trash, deleted, or not visible to the person."""
    conditions = [
        When(target_type=kind, then=~Exists(visible(user).filter(pk=OuterRef("target_id"))))
        for kind, visible in JOB_TARGETS.items()
    ]
    return Case(*conditions, default=Value(False), output_field=BooleanField())


def job_list(*, user: User, state: str = "", kind: str = "", person: str = "") -> QuerySet[Job]:
    """Jobs this person may see, newest first.

    Args:
        person: Key of the person who submitted them, or ``me``; anything else finds nothing.
    """
    visible = _visible_jobs(user).select_related("created_by", "lab")
    jobs: QuerySet[Job] = visible.annotate(hides_name=_hides_name(user))
    if state in JobState.values:
        jobs = jobs.filter(state=state)
    if kind:
        jobs = jobs.filter(kind=kind)
    return jobs_of_person(jobs, person, user) if person else jobs


def _visible_jobs(user: User) -> QuerySet[Job]:
    return Job.objects.visible_to(user).exclude(kind__in=internal_kinds())


def jobs_of_person(jobs: QuerySet[Job], person: str, user: User) -> QuerySet[Job]:
    """Jobs that a person submitted, by their key or ``me``; anything else finds nothing."""
    try:
        key = user.pk if person == ME else uuid.UUID(person)
    except ValueError:
        return jobs.none()
    return jobs.filter(created_by=key)


def job_get(*, user: User, job_id: uuid.UUID) -> Job:
    """A job; ``NotFoundError`` if it is not visible."""
    job = job_list(user=user).filter(pk=job_id).first()
    if job is None:
        raise NotFoundError("No such job.")
    return job


def job_kinds(*, user: User) -> list[tuple[str, str]]:
    """Kinds of the jobs this person may see, with their titles, by title."""
    kinds = _visible_jobs(user).order_by().values_list("kind", flat=True).distinct()
    titles = [(kind, spec.title if (spec := REGISTRY.get(kind)) else kind) for kind in kinds]
    return sorted(titles, key=lambda pair: pair[1])


def job_people(*, user: User) -> list[User]:
    """People who submitted jobs that this person may see, by name."""
    submitters = _visible_jobs(user).order_by().values("created_by")
    return sorted(User.objects.filter(pk__in=submitters), key=lambda person: str(person).lower())


def job_latest_for(
    *, target_type: str, target_ids: list[uuid.UUID], user: User | None = None
) -> dict[uuid.UUID, Job]:
    """Newest job of each target, in one query.

    Args:
        user: Only jobs that this person may see; None: the caller has checked permission.
    """
    jobs = Job.objects.visible_to(user) if user else Job.objects.all()
    jobs = jobs.filter(target_type=target_type, target_id__in=target_ids)
    of_target = jobs.filter(target_id=OuterRef("target_id")).order_by("-created_at", "pk")
    newest = jobs.filter(pk=Subquery(of_target.values("pk")[:1])).order_by()
    return {job.target_id: job for job in newest if job.target_id}


def workers_alive() -> QuerySet[WorkerHeartbeat]:
    """Workers with a recent heartbeat."""
    return _recent_heartbeats().exclude(queues=REAPER_QUEUES)


def process_count(queue: str) -> int:
    """Number of worker processes that serve a queue."""
    rows = workers_alive().values_list("queues", "processes")
    return sum(processes for queues, processes in rows if queue in queues.split(","))


def worker_devices() -> list[str]:
    """Devices that the networks of live workers run on, without duplicates. One query."""
    rows = workers_alive().exclude(device="").order_by("device")
    return list(rows.values_list("device", flat=True).distinct())


def reapers_alive() -> QuerySet[WorkerHeartbeat]:
    """Reapers with a recent heartbeat."""
    return _recent_heartbeats().filter(queues=REAPER_QUEUES)


def _recent_heartbeats() -> QuerySet[WorkerHeartbeat]:
    return WorkerHeartbeat.objects.filter(last_seen_at__gt=Now() - WORKER_SILENT_AFTER)
