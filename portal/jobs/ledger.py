"""Every move of a job row: an UPDATE guarded by state and lease token, so that one caller wins."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from portal.core.events import event_emit
from portal.jobs.models import Job, JobState

MAX_BACKOFF_S = 600.0  # nobody waits longer for a retry


def lease_length() -> timedelta:
    """How long a worker may be silent before its job is given to another."""
    return timedelta(seconds=settings.TESSERA_JOB_LEASE_S)


def claim(job_id: uuid.UUID, *, worker: str) -> Job | None:
    """Take a queued job whose time has come. None where another worker has it or it ended."""
    now, token = timezone.now(), uuid.uuid4()
    taken = (
        Job.objects.filter(pk=job_id, state=JobState.QUEUED)
        .filter(Q(not_before=None) | Q(not_before__lte=now))
        .update(
            state=JobState.RUNNING,
            lease_token=token,
            lease_until=now + lease_length(),
            heartbeat_at=now,
            worker=worker,
            attempts=F("attempts") + 1,
            started_at=Coalesce("started_at", now),
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


def held(job_id: uuid.UUID, token: uuid.UUID) -> QuerySet[Job]:
    """The job's row, if this lease still holds it."""
    return Job.objects.filter(pk=job_id, state=JobState.RUNNING, lease_token=token)


def renew(job_id: uuid.UUID, token: uuid.UUID, **changes: Any) -> bool:
    """Renew the lease and write ``changes`` (progress). False where the lease was lost."""
    now = timezone.now()
    rows = held(job_id, token).update(
        lease_until=now + lease_length(), heartbeat_at=now, updated_at=now, **changes
    )
    return rows == 1


def end(rows: QuerySet[Job], job_id: uuid.UUID, state: JobState, **changes: Any) -> bool:
    """Move the job to an end state and say so (``job.ended``), in one transaction.

    ``rows`` is the guard: it matches the row only where the caller may end it.
    """
    now = timezone.now()
    if state != JobState.SUCCEEDED:
        changes["idempotency_key"] = None  # what failed or was cancelled may be asked for again
    with transaction.atomic():
        if not rows.update(state=state, finished_at=now, updated_at=now, **changes):
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
    now = timezone.now()
    changed = rows.update(
        state=JobState.QUEUED,
        lease_token=None,
        lease_until=None,
        rung_at=None,
        not_before=now + timedelta(seconds=min(delay_s, MAX_BACKOFF_S)),
        error_message=message,
        updated_at=now,
    )
    return changed == 1
