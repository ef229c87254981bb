"""How long jobs will wait, and how long those at work still take: estimates for people."""

from __future__ import annotations

import heapq
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.core.cache import cache
from django.db.models import Avg, DurationField, F
from django.db.models.functions import Now

from portal.core.tasks import Priority
from portal.jobs.models import Job, JobState
from portal.jobs.selectors.jobs import WEEK, workers_alive
from portal.jobs.selectors.turns import Party, Waiting, jobs_due, line_up, turns_of

LINE_AT_MOST = 2_000  # jobs that are put in order for a page; later ones get no place
MEANS_KEPT_S = 60.0  # means of a week hardly change, and the page asks again and again
PART_S = 5.0  # bulk work gives way after its present part, which takes a few seconds


@dataclass(frozen=True, slots=True)
class Wait:
    """Where a job stands.

    Attributes:
        position: 1 is next.
        seconds: until it begins; None if nothing is known of what goes before it.
    """

    position: int
    seconds: float | None


def waits() -> dict[uuid.UUID, Wait]:
    """Every waiting job that has a place. Five queries, however many there are."""
    lines: dict[str, list[Waiting]] = defaultdict(list)
    rows = jobs_due().order_by("priority", "created_at", "pk")
    fields = ("pk", "kind", "priority", "lab_id", "created_by_id", "created_at", "queue")
    for pk, kind, priority, lab_id, person_id, created_at, queue in rows.values_list(*fields)[
        :LINE_AT_MOST
    ]:
        party = Party(priority, lab_id, person_id)
        lines[queue].append(Waiting(pk, kind, party, created_at))
    if not lines:
        return {}
    served = turns_of({job.party for line in lines.values() for job in line})
    means, busy, processes = _means(), _busy(), _processes()
    found: dict[uuid.UUID, Wait] = {}
    for queue, line in lines.items():
        in_order = line_up(line, served)
        at = _begins(in_order, means, busy[queue], processes.get(queue, 0))
        found |= {
            job.pk: Wait(place, seconds)
            for place, (job, seconds) in enumerate(zip(in_order, at, strict=True), start=1)
        }
    return found


def _begins(
    line: Sequence[Waiting], means: dict[str, float], busy: Sequence[float | None], processes: int
) -> list[float | None]:
    """Seconds until each begins: whoever is free first takes the next. None once unknown."""
    if processes < 1 or any(left is None for left in busy):
        return [None] * len(line)
    free = [left or 0.0 for left in busy] + [0.0] * max(0, processes - len(busy))
    heapq.heapify(free)
    begins: list[float | None] = []
    for job in line:
        begins.append(free[0])
        took = means.get(job.kind)
        if took is None:
            break
        heapq.heapreplace(free, free[0] + took)
    return begins + [None] * (len(line) - len(begins))


def _busy() -> dict[str, list[float | None]]:
    """By queue, how long each running job still holds its worker."""
    means = _means()
    found: dict[str, list[float | None]] = defaultdict(list)
    for job in Job.objects.filter(state=JobState.RUNNING):
        left = time_left_s(job)
        if left is None and job.heartbeat_at and job.started_at and job.kind in means:
            ran_s = (job.heartbeat_at - job.started_at).total_seconds()
            left = max(0.0, means[job.kind] - ran_s)
        found[job.queue].append(PART_S if job.priority == Priority.BULK else left)
    return found


def time_left_s(job: Job) -> float | None:
    """Seconds that the present phase of a running job still takes, by its progress so far.

    None if it did not say how much there is to do, or has only begun. All times are the
    database's.
    """
    if job.state != JobState.RUNNING or job.phase_at is None or job.heartbeat_at is None:
        return None
    done = job.progress_done - job.phase_from
    took_s = (job.heartbeat_at - job.phase_at).total_seconds()
    if done <= 0 or took_s <= 0 or job.progress_total <= 0:
        return None
    return max(0, job.progress_total - job.progress_done) * took_s / done


def _means() -> dict[str, float]:
    """Seconds that a job of each kind took in the last week."""
    known: dict[str, float] | None = cache.get("jobs-means")
    if known is not None:
        return known
    took = Avg(F("finished_at") - F("started_at"), output_field=DurationField())
    ended = Job.objects.filter(state=JobState.SUCCEEDED, finished_at__gt=Now() - WEEK)
    rows = ended.order_by().values_list("kind").annotate(took=took)
    means = {kind: length.total_seconds() for kind, length in rows if length is not None}
    cache.set("jobs-means", means, MEANS_KEPT_S)
    return means


def _processes() -> dict[str, int]:
    """By queue, how many jobs its workers run at once."""
    found: dict[str, int] = defaultdict(int)
    for queues, processes in workers_alive().values_list("queues", "processes"):
        for queue in queues.split(","):
            found[queue] += processes
    return found
