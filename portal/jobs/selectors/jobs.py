"""Reads of jobs and workers."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db.models import BooleanField, Case, Exists, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Now

from portal.core.errors import NotFoundError
from portal.core.tasks import REGISTRY
from portal.jobs.models import Job, JobState, WorkerSign
from portal.labs.models import User

REAPER_QUEUES = "-"  # what a reaper signs with in the place of queues: it serves none
WORKER_SILENT_AFTER = timedelta(seconds=45)  # four signs, one each 10 s, did not come
WEEK = timedelta(days=7)
ME = "me"
_TARGETS: dict[str, Callable[[User], QuerySet[Any]]] = {}


def target_register(target_type: str, shown: Callable[[User], QuerySet[Any]]) -> None:
    """Let a higher app say which of its things are shown: jobs name no others.

    Call from ``AppConfig.ready``; ``shown`` gives those that lie in no bin and whose names the
    person may read, among the things of the person's labs.
    """
    _TARGETS[target_type] = shown


def _hides_name(user: User) -> Case:
    """True for a job of something that is in the bin, gone, or not shown to the person."""
    gone = [
        When(target_type=kind, then=~Exists(shown(user).filter(pk=OuterRef("target_id"))))
        for kind, shown in _TARGETS.items()
    ]
    return Case(*gone, default=Value(False), output_field=BooleanField())


def job_list(*, user: User, state: str = "", kind: str = "", person: str = "") -> QuerySet[Job]:
    """The jobs this person may see, newest first.

    Args:
        person: key of the person who asked for them, or ``me``; anything else finds nothing.
    """
    mine = Job.objects.visible_to(user).select_related("created_by", "lab")
    jobs: QuerySet[Job] = mine.annotate(hides_name=_hides_name(user))
    if state in JobState.values:
        jobs = jobs.filter(state=state)
    if kind:
        jobs = jobs.filter(kind=kind)
    return jobs_of_person(jobs, person, user) if person else jobs


def jobs_of_person(jobs: QuerySet[Job], person: str, user: User) -> QuerySet[Job]:
    """Those that a person asked for: by their key, or ``me``. Anything else finds nothing."""
    try:
        key = user.pk if person == ME else uuid.UUID(person)
    except ValueError:
        return jobs.none()
    return jobs.filter(created_by=key)


def job_get(*, user: User, job_id: uuid.UUID) -> Job:
    """One job, or ``NotFoundError``."""
    job = job_list(user=user).filter(pk=job_id).first()
    if job is None:
        raise NotFoundError("No such job.")
    return job


def job_kinds(*, user: User) -> list[tuple[str, str]]:
    """Kinds of the jobs this person may see, with their titles, by title."""
    kinds = Job.objects.visible_to(user).order_by().values_list("kind", flat=True).distinct()
    titles = [(kind, spec.title if (spec := REGISTRY.get(kind)) else kind) for kind in kinds]
    return sorted(titles, key=lambda pair: pair[1])


def job_people(*, user: User) -> list[User]:
    """Who asked for the jobs this person may see, by name."""
    asked = Job.objects.visible_to(user).order_by().values("created_by")
    return sorted(User.objects.filter(pk__in=asked), key=lambda person: str(person).lower())


def job_latest_for(
    *, target_type: str, target_ids: list[uuid.UUID], user: User | None = None
) -> dict[uuid.UUID, Job]:
    """The newest job of each target, in one query.

    Args:
        user: only jobs that this person may see; None: the caller has checked that.
    """
    jobs = Job.objects.visible_to(user) if user else Job.objects.all()
    jobs = jobs.filter(target_type=target_type, target_id__in=target_ids)
    of_target = jobs.filter(target_id=OuterRef("target_id")).order_by("-created_at", "pk")
    newest = jobs.filter(pk=Subquery(of_target.values("pk")[:1])).order_by()
    return {job.target_id: job for job in newest if job.target_id}


def workers_alive() -> QuerySet[WorkerSign]:
    """Workers heard of lately."""
    return _heard_of().exclude(queues=REAPER_QUEUES)


def processes_of(queue: str) -> int:
    """How many jobs of a queue its workers run at once."""
    rows = workers_alive().values_list("queues", "processes")
    return sum(processes for queues, processes in rows if queue in queues.split(","))


def devices_alive() -> list[str]:
    """What the networks of the workers heard of lately run on, each once. One query."""
    rows = workers_alive().exclude(device="").order_by("device")
    return list(rows.values_list("device", flat=True).distinct())


def reapers_alive() -> QuerySet[WorkerSign]:
    """Reapers heard of lately."""
    return _heard_of().filter(queues=REAPER_QUEUES)


def _heard_of() -> QuerySet[WorkerSign]:
    return WorkerSign.objects.filter(seen_at__gt=Now() - WORKER_SILENT_AFTER)
