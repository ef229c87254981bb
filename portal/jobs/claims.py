"""Claims, leases and state changes of jobs.

Each change is an UPDATE guarded by state and lease token, so only one of several callers wins. All
times come from the database (``Now()``), because the clocks of machines may differ.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import timedelta
from itertools import takewhile
from typing import Any, NamedTuple, TypedDict

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Coalesce, Now

from portal.core.database.locks import transaction_lock
from portal.core.events import event_emit, events_emit
from portal.core.tasks import Batching, internal_kinds
from portal.jobs.events import JobEvent
from portal.jobs.models import Job, JobState, LastServed
from portal.jobs.selectors.jobs import process_count
from portal.jobs.selectors.scheduling import (
    Requester,
    jobs_due,
    next_jobs,
    runnable_jobs,
)

MAX_BACKOFF_S = 600.0  # longest pause before a retry
CANCELLED = {"error_code": "cancelled", "error_message": "Cancelled."}
"""Error fields of a cancelled job."""


def lease_duration() -> timedelta:
    """Time after which a worker that sent no heartbeat loses its job."""
    return timedelta(seconds=settings.TESSERA_JOB_LEASE_S)


def _claim_lock(queue: str) -> None:
    """Serialise claims of a queue. A process that is paused in one loses it after a lease."""
    transaction_lock(f"claim:{queue}", idle_timeout_s=settings.TESSERA_JOB_LEASE_S)


class Claim(NamedTuple):
    """Result of handling a message: the job if it was claimed, and jobs that need a message."""

    job: Job | None
    unsent: list[Job]


def claim_if_next(job_id: uuid.UUID, *, worker: str) -> Claim:
    """Claim this job if it is next in its queue, and mark the jobs after it as sent.

    Both happen in one transaction, since SQLite has a single writer; claims of a queue are
    serialised. A job waits for those before it in the queue unless their messages were sent before
    its own, because other workers then have them. A job that waits needs a new message.
    """
    with transaction.atomic():
        queue = Job.objects.filter(pk=job_id).values_list("queue", flat=True).first()
        if queue is None:
            return Claim(None, [])
        _claim_lock(queue)
        limit = max_message_count(queue)
        line = next_jobs(queue, limit + 1)
        job = next((other for other in line if other.pk == job_id), None)
        job = job or runnable_jobs(queue).filter(pk=job_id).first()
        claimed = None
        if job is not None and _must_wait(job, line[:limit]):
            mark_unsent([job])
        elif job is not None:
            claimed = claim(job_id, worker=worker)
            line = [other for other in line if other.pk != job_id]
            if claimed is not None:
                _record_service(Requester(job.priority, job.lab_id, job.created_by_id))
        return Claim(claimed, _mark_sent(line[:limit]))


def _must_wait(job: Job, line: list[Job]) -> bool:
    before = takewhile(lambda other: other.pk != job.pk, line)
    return any(
        other.sent_at is None or job.sent_at is None or other.sent_at > job.sent_at
        for other in before
    )


def max_message_count(queue: str) -> int:
    """Largest number of messages of a queue: one for each process, and one to follow it."""
    return 2 * max(1, process_count(queue))


def mark_sent_if_room(job: Job) -> bool:
    """Mark a new job as sent if its queue has fewer than ``max_message_count`` unclaimed messages.

    Two reads and at most one UPDATE, which do not look at the order of the queue: a job that is
    claimed before its turn waits, and that claim sends the jobs before it.
    """
    unclaimed = Job.objects.filter(queue=job.queue, state=JobState.QUEUED, sent_at__gte=_stale())
    max_count = max_message_count(job.queue)
    if unclaimed.order_by()[:max_count].count() >= max_count:
        return False
    new = Job.objects.filter(pk=job.pk, state=JobState.QUEUED, sent_at=None)
    return new.update(sent_at=Now()) == 1


def mark_sent(queue: str) -> list[Job]:
    """Mark the first jobs of a queue that need a message as sent; returns them in order."""
    with transaction.atomic():
        _claim_lock(queue)
        return _mark_sent(next_jobs(queue, max_message_count(queue)))


def _mark_sent(line: list[Job]) -> list[Job]:
    needing = Job.objects.filter(_needs_message(), pk__in=[job.pk for job in line])
    keys = set(needing.values_list("pk", flat=True))
    if keys:
        Job.objects.filter(pk__in=keys).update(sent_at=Now())
    return [job for job in line if job.pk in keys]


def mark_unsent(jobs: Iterable[Job]) -> None:
    """Mark jobs as needing a message again."""
    Job.objects.filter(pk__in=[job.pk for job in jobs]).update(sent_at=None)


def mark_queues_unsent(queues: Iterable[str]) -> None:
    """Mark all waiting jobs of queues as needing a message, after their worker was killed."""
    Job.objects.filter(queue__in=list(queues), state=JobState.QUEUED).update(sent_at=None)


def _needs_message() -> Q:
    """Filter for jobs whose message was never sent, or so long ago that it must be lost."""
    return Q(sent_at=None) | Q(sent_at__lt=_stale())


def _stale() -> CombinedExpression:
    return Now() - timedelta(seconds=settings.TESSERA_JOB_RESEND_AFTER_S)


def claim_batch(first: Job, batching: Batching, *, worker: str) -> list[Job]:
    """Claim the next jobs that can run in a batch with a job just claimed.

    Takes only jobs that this worker would have run next anyway, up to the first of another kind or
    priority, and leaves the other workers of the queue their share. A job that was tried before
    runs on its own, so that one that kills its process does not take others with it again.
    """
    max_size = batching.max_size() if first.attempts == 1 else 1
    if max_size <= 1 or not runnable_jobs(first.queue).filter(kind=first.kind).exists():
        return []
    with transaction.atomic():
        _claim_lock(first.queue)
        claimed: list[Job] = []
        for waiting in _batchable(
            first, batching, next_jobs(first.queue, _worker_share(first.queue, max_size))
        ):
            job = claim(waiting.pk, worker=worker)
            if job is not None:
                _record_service(Requester(job.priority, job.lab_id, job.created_by_id))
                claimed.append(job)
    return claimed


def _worker_share(queue: str, max_size: int) -> int:
    """Number of waiting jobs that one worker of a queue may add to its first."""
    workers = max(1, process_count(queue))
    waiting = runnable_jobs(queue)[: max_size * workers].count()
    return min(max_size, -(-(waiting + 1) // workers)) - 1


def _batchable(first: Job, batching: Batching, line: list[Job]) -> list[Job]:
    """Jobs at the head of the line that can share a batch with the first."""

    def may_join(job: Job) -> bool:
        same = (job.kind, job.priority, job.payload_version)
        return job.attempts == 0 and same == (first.kind, first.priority, first.payload_version)

    head = list(takewhile(may_join, line))
    first_key, *keys = batching.keys([job.args for job in (first, *head)])
    if first_key is None:
        return []
    return [
        job for job, _ in takewhile(lambda pair: pair[1] == first_key, zip(head, keys, strict=True))
    ]


def _record_service(requester: Requester) -> None:
    LastServed.objects.bulk_create(
        [
            LastServed(
                lab_id=requester.lab_id,
                person=requester.person,
                priority=requester.priority,
                served_at=Now(),
            )
        ],
        update_conflicts=True,
        unique_fields=["lab", "person", "priority"],
        update_fields=["served_at"],
    )


def must_yield(job: Job, *, ran_long: bool) -> bool:
    """Return whether a running job must let other jobs go first.

    It always yields to more urgent jobs, and after a while to other people's of its priority.
    """
    waiting = runnable_jobs(job.queue)
    if waiting.filter(priority__lt=job.priority).exists():
        return True
    waiting_others = waiting.filter(priority=job.priority)
    waiting_others = waiting_others.exclude(lab_id=job.lab_id, created_by_id=job.created_by_id)
    return ran_long and waiting_others.exists()


def claim(job_id: uuid.UUID, *, worker: str) -> Job | None:
    """Claim a queued job that is due; None if another worker has it or it has ended."""
    token = uuid.uuid4()
    claimed = (
        jobs_due()
        .filter(pk=job_id)
        .update(
            state=JobState.RUNNING,
            lease_token=token,
            lease_until=Now() + lease_duration(),
            heartbeat_at=Now(),
            worker=worker,
            attempts=F("attempts") + 1,
            started_at=Coalesce("started_at", Now()),
            progress_done=0,
            progress_total=0,
            phase="",
            phase_at=None,
            phase_from=0,
            error_code="",
            error_message="",
            traceback="",
        )
    )
    if not claimed:
        return None
    return Job.objects.select_related("lab", "created_by").filter(lease_token=token).first()


def jobs_run_by(workers: list[str]) -> QuerySet[Job]:
    """Jobs that these workers are running."""
    return Job.objects.filter(state=JobState.RUNNING, worker__in=workers)


def release(running: QuerySet[Job], *, message: str) -> int:
    """Return running jobs to the queue without counting the attempt; returns how many.

    For interruptions that are not the job's fault, such as a stopped worker. A process that still
    runs one of them loses its lease.
    """
    return running.update(
        state=JobState.QUEUED,
        lease_token=None,
        lease_until=None,
        sent_at=None,
        not_before=None,
        attempts=F("attempts") - 1,
        error_message=message,
        updated_at=Now(),
    )


def leased_job(job_id: uuid.UUID, token: uuid.UUID) -> QuerySet[Job]:
    """The job's row as a query, empty if this lease was lost."""
    return Job.objects.filter(pk=job_id, state=JobState.RUNNING, lease_token=token)


def renew_lease(job_id: uuid.UUID, token: uuid.UUID, **changes: Any) -> bool:
    """Renew the lease and write ``changes`` (progress). False if the lease was lost."""
    rows = leased_job(job_id, token).update(
        lease_until=Now() + lease_duration(), heartbeat_at=Now(), updated_at=Now(), **changes
    )
    return rows == 1


def end_job(rows: QuerySet[Job], job_id: uuid.UUID, state: JobState, **changes: Any) -> bool:
    """Move a job to an end state and emit ``job.ended``, in one transaction.

    An internal job emits no event, and its row is deleted if it succeeded.

    Args:
        rows: The job's row as a query that is empty where the caller may not end it.
    """
    with transaction.atomic():
        if not rows.update(state=state, finished_at=Now(), updated_at=Now(), **changes):
            return False
        job = Job.objects.get(pk=job_id)
        if job.kind not in internal_kinds():
            event_emit(JobEvent.ENDED, lab_id=job.lab_id, payload=_ended_payload(job))
        elif state == JobState.SUCCEEDED:
            job.delete()
    return True


def cancel_waiting(job_ids: Iterable[uuid.UUID], *, lab_id: uuid.UUID) -> int:
    """Cancel the waiting ones of a lab's jobs, in one transaction; returns how many."""
    with transaction.atomic():
        waiting = Job.objects.select_for_update().filter(
            pk__in=list(job_ids), lab_id=lab_id, state=JobState.QUEUED
        )
        ids = list(waiting.order_by("pk").values_list("pk", flat=True))
        ended = Job.objects.filter(pk__in=ids)
        ended.update(
            state=JobState.CANCELLED,
            finished_at=Now(),
            updated_at=Now(),
            cancel_requested=True,
            **CANCELLED,
        )
        events_emit(JobEvent.ENDED, lab_id=lab_id, payloads=[_ended_payload(job) for job in ended])
    return len(ids)


class JobEndedPayload(TypedDict):
    job_id: str
    kind: str
    state: str
    target_type: str
    target_id: str | None
    error_code: str
    error_message: str


def _ended_payload(job: Job) -> JobEndedPayload:
    return {
        "job_id": str(job.pk),
        "kind": job.kind,
        "state": str(job.state),
        "target_type": job.target_type,
        "target_id": str(job.target_id) if job.target_id else None,
        "error_code": job.error_code,
        "error_message": job.error_message,
    }


def requeue(rows: QuerySet[Job], *, delay_s: float, message: str) -> bool:
    """Return a running job to the queue, due in ``delay_s``; the reaper sends its message."""
    changed = rows.update(
        state=JobState.QUEUED,
        lease_token=None,
        lease_until=None,
        sent_at=None,
        not_before=Now() + timedelta(seconds=min(delay_s, MAX_BACKOFF_S)),
        error_message=message,
        updated_at=Now(),
    )
    return changed == 1
