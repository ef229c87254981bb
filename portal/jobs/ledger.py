"""Every move of a job row: an UPDATE guarded by state and lease token, so that one caller wins.

Every time in the ledger is the database's (``Now()``), written and compared there: leases hold
however far the clocks of the machines around it are apart.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce, Now

from portal.core.events import event_emit
from portal.jobs.models import Job, JobState

MAX_BACKOFF_S = 600.0  # nobody waits longer for a retry


def lease_length() -> timedelta:
    """How long a worker may be silent before its job is given to another."""
    return timedelta(seconds=settings.TESSERA_JOB_LEASE_S)


def claim(job_id: uuid.UUID, *, worker: str) -> Job | None:
    """Take a queued job whose time has come. None where another worker has it or it ended."""
    token = uuid.uuid4()
    taken = (
        Job.objects.filter(pk=job_id, state=JobState.QUEUED)
        .filter(Q(not_before=None) | Q(not_before__lte=Now()))
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
    """Renew the lease and write ``changes`` (progress). False where the lease was lost."""
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
        event_emit(
            "job.ended",
            lab_id=job.lab_id,
            payload={
                "job_id": str(job.pk),
                "kind": job.kind,
                "state": str(job.state),
                "target_type": job.target_type,
                "target_id": str(job.target_id) if job.target_id else None,
                "error_code": job.error_code,
                "error_message": job.error_message,
            },
        )
    return True


def requeue(rows: QuerySet[Job], *, delay_s: float, message: str) -> bool:
    """Give a running job back to the queue, not before ``delay_s``; the reaper rings then."""
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
