"""Order of waiting jobs: by priority, then one job of each lab in turn.

The lab that has waited longest since work of its own was last begun is next, and within it the
person who has. So neither a lab of many people, nor an import, nor a colleague's work keeps the
jobs of others behind it.
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


class Turns(NamedTuple):
    """When work was last begun, of people and of labs, by priority; those never served are missing.

    A lab's is that of anybody in it, whether they wait for more or not.
    """

    parties: dict[Party, datetime]
    labs: dict[tuple[int, uuid.UUID], datetime]


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


def turns_of(parties: Iterable[Party]) -> Turns:
    """When work was last begun for them and for their labs. One query."""
    asked = {(party.priority, party.lab_id, party.person): party for party in parties}
    rows = JobTurn.objects.filter(lab_id__in={party.lab_id for party in asked.values()})
    turns = Turns({}, {})
    for priority, lab_id, person, at in rows.values_list(
        "priority", "lab_id", "person", "served_at"
    ):
        lab = (priority, lab_id)
        turns.labs[lab] = max(at, turns.labs.get(lab, at))
        if party := asked.get((priority, lab_id, person)):
            turns.parties[party] = at
    return turns


def sorted_by_turn(first: Mapping[Party, datetime], turns: Turns) -> list[Party]:
    """Parties in the order of their turns: within a priority each lab's first, then their second.

    Args:
        first: who waits, and since when their oldest job has waited.
    """
    labs: dict[tuple[int, uuid.UUID], list[Party]] = {}
    for party in sorted(
        first, key=lambda one: (*_turn(turns.parties.get(one), first[one]), one.person)
    ):
        labs.setdefault((party.priority, party.lab_id), []).append(party)

    def key(lab: tuple[int, uuid.UUID]) -> tuple[int, bool, datetime, datetime, str]:
        waiting_since = min(first[party] for party in labs[lab])
        return (lab[0], *_turn(turns.labs.get(lab), waiting_since), str(lab[1]))

    in_turn = [labs[lab] for lab in sorted(labs, key=key)]
    found = []
    for _, group in groupby(in_turn, key=lambda parties: parties[0].priority):
        for round_ in zip_longest(*group):
            found += [party for party in round_ if party is not None]
    return found


def _turn(served_at: datetime | None, waiting_since: datetime) -> tuple[bool, datetime, datetime]:
    """Sort key: whoever was never served goes first, then whoever was served longest ago."""
    return served_at is not None, served_at or waiting_since, waiting_since


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


def line_up(waiting: Sequence[Waiting], turns: Turns) -> list[Waiting]:
    """The jobs of one queue in the order in which workers will take them."""
    theirs: dict[Party, deque[Waiting]] = {}
    for job in sorted(waiting, key=lambda job: (job.created_at, job.pk)):
        theirs.setdefault(job.party, deque()).append(job)
    parties = sorted_by_turn({p: jobs[0].created_at for p, jobs in theirs.items()}, turns)
    line: list[Waiting] = []
    for _, group in groupby(parties, key=lambda party: party.priority):
        labs: dict[uuid.UUID, deque[deque[Waiting]]] = {}
        for party in group:
            labs.setdefault(party.lab_id, deque()).append(theirs[party])
        turn = deque(labs.values())
        while turn:
            people = turn.popleft()
            jobs = people.popleft()
            line.append(jobs.popleft())
            if jobs:
                people.append(jobs)
            if people:
                turn.append(people)
    return line
