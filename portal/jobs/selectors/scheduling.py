"""Order of waiting jobs: by priority, then round-robin over labs and over people within a lab.

The next lab is the one whose work was started longest ago, and likewise the next person within it.
A large lab, an import or a colleague's backlog therefore does not delay the jobs of others.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby, zip_longest
from typing import NamedTuple

from django.db.models import Min, Q, QuerySet
from django.db.models.functions import Now

from portal.core.tasks import REGISTRY
from portal.jobs.models import Job, JobState, LastServed


class Requester(NamedTuple):
    """Person in a lab (None: the portal itself) with waiting jobs of a priority."""

    priority: int
    lab_id: uuid.UUID
    person_id: uuid.UUID | None

    @property
    def person(self) -> str:
        """Key in ``LastServed``; empty for the portal itself."""
        return "" if self.person_id is None else str(self.person_id)


class LastServedTimes(NamedTuple):
    """Times at which work of requesters and of labs was last started; absent if never.

    The time of a lab counts everybody in it, whether they have waiting jobs or not.
    """

    requesters: dict[Requester, datetime]
    labs: dict[tuple[int, uuid.UUID], datetime]


class QueuedJob(NamedTuple):
    """Fields of a waiting job that its place in the queue depends on."""

    pk: uuid.UUID
    kind: str
    requester: Requester
    created_at: datetime


def jobs_due() -> QuerySet[Job]:
    """Waiting jobs that are due."""
    waiting = Job.objects.filter(state=JobState.QUEUED)
    return waiting.filter(Q(not_before=None) | Q(not_before__lte=Now()))


def runnable_jobs(queue: str) -> QuerySet[Job]:
    """Due jobs of a queue that this release can run; newer kinds are left to newer workers."""
    runnable = Q(pk__in=[])
    versions = {spec.version for spec in REGISTRY.values()}
    for version in versions:
        kinds = [kind for kind, spec in REGISTRY.items() if spec.version == version]
        runnable |= Q(kind__in=kinds, payload_version__lte=version)
    return jobs_due().filter(runnable, queue=queue)


def requesters_in_order(jobs: QuerySet[Job]) -> tuple[list[Requester], LastServedTimes]:
    """Requesters of these jobs, the next one first, and their last served times. Two queries."""
    rows = (
        jobs.order_by()
        .values_list("priority", "lab_id", "created_by_id")
        .annotate(first=Min("created_at"))
    )
    first = {Requester(*row[:3]): row[3] for row in rows}
    times = last_served_times(first)
    return sort_requesters(first, times), times


def jobs_of_requester(jobs: QuerySet[Job], requester: Requester) -> QuerySet[Job]:
    """Jobs of one requester, the oldest first."""
    queued = jobs.filter(
        priority=requester.priority, lab_id=requester.lab_id, created_by_id=requester.person_id
    )
    return queued.order_by("created_at", "pk")


def last_served_times(requesters: Iterable[Requester]) -> LastServedTimes:
    """Last served times of requesters and of their labs. One query."""
    by_key = {
        (requester.priority, requester.lab_id, requester.person): requester
        for requester in requesters
    }
    rows = LastServed.objects.filter(lab_id__in={requester.lab_id for requester in by_key.values()})
    times = LastServedTimes({}, {})
    for priority, lab_id, person, at in rows.values_list(
        "priority", "lab_id", "person", "served_at"
    ):
        lab = (priority, lab_id)
        times.labs[lab] = max(at, times.labs.get(lab, at))
        if requester := by_key.get((priority, lab_id, person)):
            times.requesters[requester] = at
    return times


def sort_requesters(first: Mapping[Requester, datetime], times: LastServedTimes) -> list[Requester]:
    """Requesters by priority, then the first of each lab, then the second of each lab.

    Args:
        first: creation time of the oldest waiting job of each requester.
    """
    labs: dict[tuple[int, uuid.UUID], list[Requester]] = {}
    for requester in sorted(
        first,
        key=lambda waiting: (
            *_service_key(times.requesters.get(waiting), first[waiting]),
            waiting.person,
        ),
    ):
        labs.setdefault((requester.priority, requester.lab_id), []).append(requester)

    def key(lab: tuple[int, uuid.UUID]) -> tuple[int, bool, datetime, datetime, str]:
        waiting_since = min(first[requester] for requester in labs[lab])
        return (lab[0], *_service_key(times.labs.get(lab), waiting_since), str(lab[1]))

    labs_in_order = [labs[lab] for lab in sorted(labs, key=key)]
    ordered = []
    for _, group in groupby(labs_in_order, key=lambda requesters: requesters[0].priority):
        for requesters_of_round in zip_longest(*group):
            ordered += [requester for requester in requesters_of_round if requester is not None]
    return ordered


def _service_key(
    served_at: datetime | None, waiting_since: datetime
) -> tuple[bool, datetime, datetime]:
    """Sort key: never served first, then served longest ago."""
    return served_at is not None, served_at or waiting_since, waiting_since


def next_jobs(queue: str, max_count: int) -> list[Job]:
    """First ``max_count`` jobs of a queue in the order in which workers claim them.

    Two queries, and one for each of the first ``max_count`` requesters.
    """
    waiting = runnable_jobs(queue)
    requesters, times = requesters_in_order(waiting)
    requesters = requesters[:max_count]
    jobs = {
        job.pk: job
        for requester in requesters
        for job in jobs_of_requester(waiting, requester)[:max_count]
    }
    queued = [
        QueuedJob(
            job.pk,
            job.kind,
            Requester(job.priority, job.lab_id, job.created_by_id),
            job.created_at,
        )
        for job in jobs.values()
    ]
    return [jobs[entry.pk] for entry in order_jobs(queued, times)[:max_count]]


def order_jobs(waiting: Sequence[QueuedJob], times: LastServedTimes) -> list[QueuedJob]:
    """Jobs of one queue in the order in which workers claim them."""
    queued: dict[Requester, deque[QueuedJob]] = {}
    for job in sorted(waiting, key=lambda job: (job.created_at, job.pk)):
        queued.setdefault(job.requester, deque()).append(job)
    requesters = sort_requesters({p: jobs[0].created_at for p, jobs in queued.items()}, times)
    line: list[QueuedJob] = []
    for _, group in groupby(requesters, key=lambda requester: requester.priority):
        labs: dict[uuid.UUID, deque[deque[QueuedJob]]] = {}
        for requester in group:
            labs.setdefault(requester.lab_id, deque()).append(queued[requester])
        rotation = deque(labs.values())
        while rotation:
            people = rotation.popleft()
            jobs = people.popleft()
            line.append(jobs.popleft())
            if jobs:
                people.append(jobs)
            if people:
                rotation.append(people)
    return line
