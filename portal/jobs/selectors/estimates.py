"""Estimates of the time until a job starts, and until a running one ends."""

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
from portal.jobs.selectors.scheduling import (
    QueuedJob,
    Requester,
    jobs_due,
    last_served_times,
    order_jobs,
)

MAX_ESTIMATES = 2_000  # jobs beyond it get no estimate
MEAN_DURATIONS_CACHE_S = 60.0  # pages poll, and means of a week hardly change
BULK_PART_S = 5.0  # bulk work yields after its current part, which takes a few seconds


@dataclass(frozen=True, slots=True)
class WaitEstimate:
    """Place of a job in its queue.

    Attributes:
        position: 1 is next.
        seconds: Time until it starts; None if the duration of a job before it is unknown.
    """

    position: int
    seconds: float | None


def wait_estimates() -> dict[uuid.UUID, WaitEstimate]:
    """Estimates for the first ``MAX_ESTIMATES`` waiting jobs. Five queries."""
    lines: dict[str, list[QueuedJob]] = defaultdict(list)
    rows = jobs_due().order_by("priority", "created_at", "pk")
    fields = ("pk", "kind", "priority", "lab_id", "created_by_id", "created_at", "queue")
    for pk, kind, priority, lab_id, person_id, created_at, queue in rows.values_list(*fields)[
        :MAX_ESTIMATES
    ]:
        requester = Requester(priority, lab_id, person_id)
        lines[queue].append(QueuedJob(pk, kind, requester, created_at))
    if not lines:
        return {}
    times = last_served_times({job.requester for line in lines.values() for job in line})
    means, remaining, processes = _mean_durations(), _remaining_times(), _process_counts()
    estimates: dict[uuid.UUID, WaitEstimate] = {}
    for queue, line in lines.items():
        in_order = order_jobs(line, times)
        starts = _start_times(in_order, means, remaining[queue], processes.get(queue, 0))
        estimates |= {
            job.pk: WaitEstimate(place, seconds)
            for place, (job, seconds) in enumerate(zip(in_order, starts, strict=True), start=1)
        }
    return estimates


def _start_times(
    line: Sequence[QueuedJob],
    means: dict[str, float],
    remaining: Sequence[float | None],
    processes: int,
) -> list[float | None]:
    """Seconds until each job starts on the first free process; None from the first unknown on."""
    if processes < 1 or any(time_s is None for time_s in remaining):
        return [None] * len(line)
    free = [time_s or 0.0 for time_s in remaining] + [0.0] * max(0, processes - len(remaining))
    heapq.heapify(free)
    starts: list[float | None] = []
    for job in line:
        starts.append(free[0])
        duration_s = means.get(job.kind)
        if duration_s is None:
            break
        heapq.heapreplace(free, free[0] + duration_s)
    return starts + [None] * (len(line) - len(starts))


def _remaining_times() -> dict[str, list[float | None]]:
    """Seconds for which each running job still occupies its process, by queue."""
    means = _mean_durations()
    times_of_queue: dict[str, list[float | None]] = defaultdict(list)
    for job in Job.objects.filter(state=JobState.RUNNING):
        time_s = time_left_s(job)
        if time_s is None and job.heartbeat_at and job.started_at and job.kind in means:
            ran_s = (job.heartbeat_at - job.started_at).total_seconds()
            time_s = max(0.0, means[job.kind] - ran_s)
        times_of_queue[job.queue].append(BULK_PART_S if job.priority == Priority.BULK else time_s)
    return times_of_queue


def time_left_s(job: Job) -> float | None:
    """Seconds left in the current phase of a running job, extrapolated from its progress.

    None if the total is unknown or no step of the phase is done. All times are the database's.
    """
    if job.state != JobState.RUNNING or job.phase_at is None or job.heartbeat_at is None:
        return None
    step_count = job.progress_done - job.phase_from
    took_s = (job.heartbeat_at - job.phase_at).total_seconds()
    if step_count <= 0 or took_s <= 0 or job.progress_total <= 0:
        return None
    return max(0, job.progress_total - job.progress_done) * took_s / step_count


def _mean_durations() -> dict[str, float]:
    """Mean duration of jobs in the last week in seconds, by kind."""
    cached: dict[str, float] | None = cache.get("jobs-means")
    if cached is not None:
        return cached
    took = Avg(F("finished_at") - F("started_at"), output_field=DurationField())
    ended = Job.objects.filter(state=JobState.SUCCEEDED, finished_at__gt=Now() - WEEK)
    rows = ended.order_by().values_list("kind").annotate(took=took)
    means = {kind: length.total_seconds() for kind, length in rows if length is not None}
    cache.set("jobs-means", means, MEAN_DURATIONS_CACHE_S)
    return means


def _process_counts() -> dict[str, int]:
    """Number of worker processes, by queue."""
    count_of_queue: dict[str, int] = defaultdict(int)
    for queues, processes in workers_alive().values_list("queues", "processes"):
        for queue in queues.split(","):
            count_of_queue[queue] += processes
    return count_of_queue
