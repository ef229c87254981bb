"""Every move of a job row: an UPDATE guarded by state and lease token, so that one caller wins.

Every time in the ledger is the database's (``Now()``), written and compared there: leases hold
however far apart the clocks of the machines around it are.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import timedelta
from itertools import takewhile
from typing import Any, TypedDict

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce, Now

from portal.core.database.locks import transaction_lock
from portal.core.events import event_emit, events_emit
from portal.core.tasks import Ahead
from portal.jobs.models import Job, JobState, JobTurn
from portal.jobs.selectors.jobs import processes_of
from portal.jobs.selectors.turns import (
    Party,
    jobs_due,
    jobs_known,
    jobs_of,
    next_in_line,
    parties_in_turn,
)

MAX_BACKOFF_S = 600.0  # nobody waits longer for a retry
CANCELLED = {"error_code": "cancelled", "error_message": "Cancelled."}
"""The error of a job that was cancelled."""


def lease_length() -> timedelta:
    """How long a worker may be silent before its job is given to another."""
    return timedelta(seconds=settings.TESSERA_JOB_LEASE_S)


def claim_next(queue: str, *, worker: str) -> Job | None:
    """Take the job of this queue whose turn it is; None if nothing waits.

    Claims of a queue are made one after the other, for the milliseconds they take: two workers
    that looked at once would both serve the same person.
    """
    if not jobs_known(queue).exists():  # others took it already: no lock is needed
        return None
    with transaction.atomic():
        transaction_lock(f"claim:{queue}")
        waiting = jobs_known(queue)
        for party in parties_in_turn(waiting):
            for job_id in jobs_of(waiting, party).values_list("pk", flat=True)[:1]:
                job = claim(job_id, worker=worker)
                if job is not None:  # not cancelled at this moment
                    _note_turn(party)
                    return job
    return None


def claim_alongside(first: Job, ahead: Ahead, *, worker: str) -> list[Job]:
    """Take those next in line that can be worked on together with a job just claimed.

    Only what this worker would have taken next anyway, up to the first job of another kind or
    priority; the other workers of the queue keep their share. Jobs that were tried before go alone,
    so that one that kills its process takes no other with it twice.
    """
    most = ahead.most() if first.attempts == 1 else 1
    if most <= 1 or not jobs_known(first.queue).filter(kind=first.kind).exists():
        return []
    with transaction.atomic():
        transaction_lock(f"claim:{first.queue}")
        taken: list[Job] = []
        for waiting in _alike(first, ahead, next_in_line(first.queue, _share(first.queue, most))):
            job = claim(waiting.pk, worker=worker)
            if job is not None:
                _note_turn(Party(job.priority, job.lab_id, job.created_by_id))
                taken.append(job)
    return taken


def _share(queue: str, most: int) -> int:
    """How many of the waiting jobs one worker of a queue takes besides its first."""
    workers = max(1, processes_of(queue))
    waiting = jobs_known(queue)[: most * workers].count()
    return min(most, -(-(waiting + 1) // workers)) - 1


def _alike(first: Job, ahead: Ahead, line: list[Job]) -> list[Job]:
    """The jobs at the head of the line that go together with the first."""

    def may_join(job: Job) -> bool:
        same = (job.kind, job.priority, job.payload_version)
        return job.attempts == 0 and same == (first.kind, first.priority, first.payload_version)

    head = list(takewhile(may_join, line))
    own, *keys = ahead.alike([job.args for job in (first, *head)])
    if own is None:
        return []
    return [job for job, _ in takewhile(lambda pair: pair[1] == own, zip(head, keys, strict=True))]


def _note_turn(party: Party) -> None:
    JobTurn.objects.bulk_create(
        [
            JobTurn(
                lab_id=party.lab_id,
                person=party.person,
                priority=party.priority,
                served_at=Now(),
            )
        ],
        update_conflicts=True,
        unique_fields=["lab", "person", "priority"],
        update_fields=["served_at"],
    )


def must_give_way(job: Job, *, ran_long: bool) -> bool:
    """Whether a running job is to let others go first.

    To more urgent work always; to that of others of its own priority once it ran for long.
    """
    waiting = jobs_known(job.queue)
    if waiting.filter(priority__lt=job.priority).exists():
        return True
    others = waiting.filter(priority=job.priority)
    others = others.exclude(lab_id=job.lab_id, created_by_id=job.created_by_id)
    return ran_long and others.exists()


def claim(job_id: uuid.UUID, *, worker: str) -> Job | None:
    """Take a queued job whose time has come. None if another worker has it or it ended."""
    token = uuid.uuid4()
    taken = (
        jobs_due()
        .filter(pk=job_id)
        .update(
            state=JobState.RUNNING,
            lease_token=token,
            lease_until=Now() + lease_length(),
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
    if not taken:
        return None
    return Job.objects.select_related("lab", "created_by").filter(lease_token=token).first()


def run_by(workers: list[str]) -> QuerySet[Job]:
    """What these workers are running."""
    return Job.objects.filter(state=JobState.RUNNING, worker__in=workers)


def hand_back(running: QuerySet[Job], *, message: str) -> int:
    """Put running jobs back into the queue as if they had not been begun. Returns how many.

    For what is not their fault: a worker that is told to stop, a database that was away. They go on
    elsewhere at once, and none of their attempts is spent. What still runs them finds its lease
    lost.
    """
    return running.update(
        state=JobState.QUEUED,
        lease_token=None,
        lease_until=None,
        rung_at=None,
        not_before=None,
        attempts=F("attempts") - 1,
        error_message=message,
        updated_at=Now(),
    )


def held(job_id: uuid.UUID, token: uuid.UUID) -> QuerySet[Job]:
    """The job's row, if this lease still holds it."""
    return Job.objects.filter(pk=job_id, state=JobState.RUNNING, lease_token=token)


def renew(job_id: uuid.UUID, token: uuid.UUID, **changes: Any) -> bool:
    """Renew the lease and write ``changes`` (progress). False if the lease was lost."""
    rows = held(job_id, token).update(
        lease_until=Now() + lease_length(), heartbeat_at=Now(), updated_at=Now(), **changes
    )
    return rows == 1


def end(rows: QuerySet[Job], job_id: uuid.UUID, state: JobState, **changes: Any) -> bool:
    """Move the job to an end state and say so (``job.ended``), in one transaction.

    ``rows`` is the guard: it matches the row only where the caller may end it.
    """
    if state != JobState.SUCCEEDED:
        changes["idempotency_key"] = None  # what failed or was cancelled may be asked for again
    with transaction.atomic():
        if not rows.update(state=state, finished_at=Now(), updated_at=Now(), **changes):
            return False
        job = Job.objects.get(pk=job_id)
        event_emit("job.ended", lab_id=job.lab_id, payload=_ending(job))
    return True


def end_all(job_ids: Iterable[uuid.UUID], *, lab_id: uuid.UUID) -> int:
    """Cancel those of a lab's jobs that still wait, in one transaction; returns how many."""
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
            idempotency_key=None,
            cancel_requested=True,
            **CANCELLED,
        )
        events_emit("job.ended", lab_id=lab_id, payloads=[_ending(job) for job in ended])
    return len(ids)


class JobEnding(TypedDict):
    """What ``job.ended`` tells."""

    job_id: str
    kind: str
    state: str
    target_type: str
    target_id: str | None
    error_code: str
    error_message: str


def _ending(job: Job) -> JobEnding:
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
    """Put a running job back, to begin ``delay_s`` later at the earliest; the reaper rings then."""
    changed = rows.update(
        state=JobState.QUEUED,
        lease_token=None,
        lease_until=None,
        rung_at=None,
        not_before=Now() + timedelta(seconds=min(delay_s, MAX_BACKOFF_S)),
        error_message=message,
        updated_at=Now(),
    )
    return changed == 1
