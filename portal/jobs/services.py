"""Writes of the ledger that people and other apps ask for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import models, transaction
from django.db.models.functions import Now

from portal.core.errors import ConflictError
from portal.core.observe import ids
from portal.core.tasks import REGISTRY
from portal.jobs import ledger
from portal.jobs.models import Job, JobState, WorkerSign
from portal.jobs.worker.bell import ring
from portal.labs.models import Lab, Role, User
from portal.labs.rules import has_role, require_role

SIGNS_KEPT = timedelta(days=7)  # somebody may ask after a worker that died last week


def job_submit(
    *,
    kind: str,
    args: Mapping[str, Any],
    lab: Lab,
    user: User | None,
    target: models.Model | None = None,
    target_name: str = "",
    idempotency_key: str | None = None,
) -> Job:
    """Write a job row; the doorbell is rung when the caller's transaction commits.

    Args:
        kind: as registered with ``portal.core.tasks.task``.
        args: JSON-able ids, passed to the task as keywords.
        idempotency_key: unique in the lab: the same key gives the job that has it, until that job
            failed or was cancelled.
    """
    spec = REGISTRY[kind]
    fields: dict[str, Any] = {
        "kind": kind,
        "queue": spec.queue,
        "max_attempts": spec.max_attempts,
        "args": dict(args),
        "payload_version": spec.version,
        "request_id": ids.request_id(),
        "created_by": user,
        "target_type": target._meta.model_name if target is not None else "",
        "target_id": target.pk if target is not None else None,
        "target_name": (target_name or (str(target) if target is not None else ""))[:200],
    }
    with transaction.atomic():
        if idempotency_key is None:
            job, is_new = Job.objects.create(lab=lab, **fields), True
        else:
            job, is_new = Job.objects.get_or_create(
                lab=lab, idempotency_key=idempotency_key, defaults=fields
            )
        if is_new:
            transaction.on_commit(partial(ring, job.pk, queue=job.queue))
    return job


def job_cancel(*, job: Job, user: User) -> Job:
    """Stop a job: at once while it waits, by a flag that the task polls while it runs.

    Its owner may, and so may a lab manager.

    Raises:
        ForbiddenError: neither owner (with at least annotator's rights) nor manager.
        ConflictError: it has ended already.
    """
    require_role(user, job.lab_id, at_least=Role.ANNOTATOR)
    if job.created_by_id != user.pk and not has_role(user, job.lab_id, at_least=Role.MANAGER):
        require_role(user, job.lab_id, at_least=Role.MANAGER)
    waiting = Job.objects.filter(pk=job.pk, state=JobState.QUEUED)
    ended = ledger.end(
        waiting,
        job.pk,
        JobState.CANCELLED,
        cancel_requested=True,
        error_code="cancelled",
        error_message="Cancelled.",
    )
    if not ended:
        flagged = Job.objects.filter(pk=job.pk, state=JobState.RUNNING).update(
            cancel_requested=True, updated_at=Now()
        )
        if not flagged:
            raise ConflictError("This job has already ended.", code="job-ended")
    job.refresh_from_db()
    return job


def job_retry(*, job: Job, user: User) -> Job:
    """Submit the work of a failed or cancelled job again, as a new row."""
    require_role(user, job.lab_id, at_least=Role.ANNOTATOR)
    if job.state not in (JobState.FAILED, JobState.CANCELLED):
        raise ConflictError("Only a failed or cancelled job can be tried again.", code="job-state")
    spec = REGISTRY[job.kind]
    again = Job(
        lab=job.lab,
        kind=job.kind,
        queue=spec.queue,
        max_attempts=spec.max_attempts,
        args=job.args,
        payload_version=job.payload_version,
        request_id=ids.request_id(),
        created_by=user,
        target_type=job.target_type,
        target_id=job.target_id,
        target_name=job.target_name,
    )
    with transaction.atomic():
        again.save(force_insert=True)
        transaction.on_commit(partial(ring, again.pk, queue=again.queue))
    return again


def signs_prune() -> int:
    """Forget workers that nobody heard of for a week: each start of one has a name of its own."""
    old = WorkerSign.objects.filter(seen_at__lt=Now() - SIGNS_KEPT)
    return old.delete()[0]
