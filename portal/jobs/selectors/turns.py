"""Whose work is next: the more urgent first, and within a priority one job of each in turn.

*Each* is somebody in a lab. Whoever waited longest since work of theirs was last begun is next, so
that neither a lab's import nor a colleague's keeps anybody else's jobs behind it.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from django.db.models import Min, Q, QuerySet
from django.db.models.functions import Now

from portal.core.tasks import REGISTRY
from portal.jobs.models import Job, JobState, JobTurn


class Party(NamedTuple):
    """Somebody in a lab (None: the portal itself) who waits for work of a priority."""

    priority: int
    lab_id: uuid.UUID
    person_id: uuid.UUID | None

    @property
    def person(self) -> str:
        """As ``JobTurn`` has it."""
        return "" if self.person_id is None else str(self.person_id)


class Waiting(NamedTuple):
    """A job in the queue."""

    pk: uuid.UUID
    kind: str
    party: Party
    created_at: datetime


def jobs_due() -> QuerySet[Job]:
    """Jobs that a worker may begin now."""
    waiting = Job.objects.filter(state=JobState.QUEUED)
    return waiting.filter(Q(not_before=None) | Q(not_before__lte=Now()))


def jobs_known(queue: str) -> QuerySet[Job]:
    """What waits in a queue that this release can run; newer work is left to newer workers."""
    known = Q(pk__in=[])
    versions = {spec.version for spec in REGISTRY.values()}
    for version in versions:
        kinds = [kind for kind, spec in REGISTRY.items() if spec.version == version]
        known |= Q(kind__in=kinds, payload_version__lte=version)
    return jobs_due().filter(known, queue=queue)


def parties_in_turn(jobs: QuerySet[Job]) -> list[Party]:
    """Whoever waits for these jobs, the next one first. Two queries."""
    rows = (
        jobs.order_by()
        .values_list("priority", "lab_id", "created_by_id")
        .annotate(first=Min("created_at"))
    )
    first = {Party(*row[:3]): row[3] for row in rows}
    return sorted_by_turn(first, turns_of(first))


def jobs_of(jobs: QuerySet[Job], party: Party) -> QuerySet[Job]:
    """A party's jobs among these, the oldest first."""
    theirs = jobs.filter(
        priority=party.priority, lab_id=party.lab_id, created_by_id=party.person_id
    )
    return theirs.order_by("created_at", "pk")


def turns_of(parties: Iterable[Party]) -> dict[Party, datetime]:
    """When work was last begun for them; those never served are missing."""
    asked = {(party.priority, party.lab_id, party.person): party for party in parties}
    rows = JobTurn.objects.filter(lab_id__in={party.lab_id for party in asked.values()})
    found = rows.values_list("priority", "lab_id", "person", "served_at")
    return {asked[key]: at for *names, at in found if (key := tuple(names)) in asked}


def sorted_by_turn(
    first: Mapping[Party, datetime], served: Mapping[Party, datetime]
) -> list[Party]:
    """Parties in the order of their turns.

    Args:
        first: who waits, and since when their oldest job has waited.
        served: see ``turns_of``.
    """

    def key(party: Party) -> tuple[int, bool, datetime, datetime, str]:
        at = served.get(party)
        return (party.priority, at is not None, at or first[party], first[party], party.person)

    return sorted(first, key=key)


def next_in_line(queue: str, most: int) -> list[Job]:
    """The first jobs of a queue, in the order in which workers will take them; ``most`` at most.

    Three queries, and one for each of the first ``most`` parties.
    """
    waiting = jobs_known(queue)
    parties = parties_in_turn(waiting)[:most]
    jobs = {job.pk: job for party in parties for job in jobs_of(waiting, party)[:most]}
    theirs = [
        Waiting(
            job.pk,
            job.kind,
            Party(job.priority, job.lab_id, job.created_by_id),
            job.created_at,
        )
        for job in jobs.values()
    ]
    return [jobs[place.pk] for place in line_up(theirs, turns_of(parties))[:most]]


def line_up(waiting: Sequence[Waiting], served: Mapping[Party, datetime]) -> list[Waiting]:
    """The jobs of one queue in the order in which workers will take them."""
    theirs: dict[Party, deque[Waiting]] = {}
    for job in sorted(waiting, key=lambda job: (job.created_at, job.pk)):
        theirs.setdefault(job.party, deque()).append(job)
    parties = sorted_by_turn({p: jobs[0].created_at for p, jobs in theirs.items()}, served)
    line: list[Waiting] = []
    for _, group in groupby(parties, key=lambda party: party.priority):
        turn = deque(theirs[party] for party in group)
        while turn:
            jobs = turn.popleft()
            line.append(jobs.popleft())
            if jobs:
                turn.append(jobs)
    return line
