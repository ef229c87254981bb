"""Submit, cancel and retry jobs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import models, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from portal.core.errors import ConflictError, InvalidInputError
from portal.core.observe import ids
from portal.core.observe.traces import traceparent
from portal.core.tasks import REGISTRY, Priority
from portal.jobs import claims
from portal.jobs.models import ENDED_STATES, OPEN_STATES, Job, JobState, WorkerHeartbeat
from portal.jobs.worker.messages import send_if_room
from portal.labs.models import Lab, Role, User
from portal.labs.rules import has_role, require_role

HEARTBEAT_RETENTION = timedelta(days=7)  # to find out about a worker that died last week
CANCEL_CHUNK = 500  # jobs in a transaction, for which SQLite's other writers wait


@dataclass(frozen=True, slots=True)
class CancellationCounts:
    """Result of cancelling several jobs.

    Attributes:
        cancelled: Waiting jobs, which ended at once.
        stopping: Running jobs, which will stop.
        not_cancelled: Jobs of others, which only a manager may cancel, and jobs that have ended.
    """

    cancelled: int
    stopping: int
    not_cancelled: int


def job_submit(
    *,
    kind: str,
    args: Mapping[str, Any],
    lab: Lab,
    user: User | None,
    target: models.Model | None = None,
    target_name: str = "",
    is_unique: bool = False,
    priority: Priority | None = None,
) -> Job:
    """Create a job; its message is sent after the caller's transaction commits.

    Args:
        kind: Declared with ``portal.core.tasks.job_task``.
        args: JSON-serialisable ids, passed to the task as keyword arguments.
        is_unique: Return an open job of this kind with the same arguments instead of creating
            another; a database constraint ensures it.
        priority: Overrides the priority of the kind.
    """
    spec = REGISTRY[kind]
    fields: dict[str, Any] = {
        "kind": kind,
        "queue": spec.queue,
        "priority": spec.priority if priority is None else priority,
        "max_attempts": spec.max_attempts,
        "args": dict(args),
        "payload_version": spec.version,
        "request_id": ids.request_id(),
        "traceparent": traceparent(),
        "created_by": user,
        "target_type": target._meta.model_name if target is not None else "",
        "target_id": target.pk if target is not None else None,
        "unique_key": _arguments_hash(args) if is_unique else "",
        "target_name": (target_name or (str(target) if target is not None else ""))[:200],
    }
    with transaction.atomic():
        if is_unique:
            job, is_new = Job.objects.get_or_create(
                lab=lab,
                kind=kind,
                unique_key=fields["unique_key"],
                state__in=OPEN_STATES,
                defaults=fields | {"state": JobState.QUEUED},
            )
        else:
            job, is_new = Job.objects.create(lab=lab, **fields), True
        if is_new:
            transaction.on_commit(partial(send_if_room, job), robust=True)
    return job


def job_cancel(*, job: Job, user: User) -> Job:
    """Cancel a waiting job, or set the flag that a running task polls.

    Raises:
        ForbiddenError: The user neither submitted it (as an annotator at least) nor is a manager.
        ConflictError: It has ended already.
    """
    require_role(user, job.lab_id, at_least=Role.ANNOTATOR)
    if job.created_by_id != user.pk and not has_role(user, job.lab_id, at_least=Role.MANAGER):
        require_role(user, job.lab_id, at_least=Role.MANAGER)
    waiting = Job.objects.filter(pk=job.pk, state=JobState.QUEUED)
    ended = claims.end_job(
        waiting, job.pk, JobState.CANCELLED, cancel_requested=True, **claims.CANCELLED
    )
    if not ended:
        flagged = Job.objects.filter(pk=job.pk, state=JobState.RUNNING).update(
            cancel_requested=True, updated_at=Now()
        )
        if not flagged:
            raise ConflictError("This job has already ended.", code="job-ended")
    job.refresh_from_db()
    return job


def jobs_cancel(*, jobs: QuerySet[Job], user: User) -> CancellationCounts:
    """Cancel those of several jobs that the user may cancel, as ``job_cancel`` does.

    Args:
        jobs: Jobs visible to ``user``.
    Raises:
        InvalidInputError: None of them is waiting or running.
        ForbiddenError: The user is a viewer and may cancel none.
    """
    open_jobs = jobs.filter(state__in=OPEN_STATES).order_by("pk")
    rows = list(open_jobs.values_list("pk", "lab_id", "created_by_id"))
    if not rows:
        raise InvalidInputError("None of these jobs is waiting or running.", code="nothing-open")
    labs = {lab_id for _, lab_id, _ in rows}
    managed_labs = {lab_id for lab_id in labs if has_role(user, lab_id, at_least=Role.MANAGER)}
    annotated_labs = {lab_id for lab_id in labs if has_role(user, lab_id, at_least=Role.ANNOTATOR)}
    if not annotated_labs:
        require_role(user, rows[0][1], at_least=Role.ANNOTATOR)
    cancelled = stopping = 0
    for lab_id in labs:
        ids = [
            pk
            for pk, lab, person in rows
            if lab == lab_id
            and (lab in managed_labs or (lab in annotated_labs and person == user.pk))
        ]
        for start in range(0, len(ids), CANCEL_CHUNK):
            chunk = ids[start : start + CANCEL_CHUNK]
            cancelled += claims.cancel_waiting(chunk, lab_id=lab_id)
            running = Job.objects.filter(pk__in=chunk, state=JobState.RUNNING)
            stopping += running.update(cancel_requested=True, updated_at=Now())
    return CancellationCounts(cancelled, stopping, len(rows) - cancelled - stopping)


def job_retry(*, job: Job, user: User) -> Job:
    """Create a new job that repeats a failed or cancelled one; twice gives the same new job.

    Foreign keys of any model to the old job are moved to the new one.

    Raises:
        ConflictError: The job is in another state.
    """
    require_role(user, job.lab_id, at_least=Role.ANNOTATOR)
    if job.state not in (JobState.FAILED, JobState.CANCELLED):
        raise ConflictError("Only a failed or cancelled job can be tried again.", code="job-state")
    spec = REGISTRY[job.kind]
    new_job = Job(
        lab=job.lab,
        kind=job.kind,
        queue=spec.queue,
        priority=job.priority,
        max_attempts=spec.max_attempts,
        args=job.args,
        payload_version=job.payload_version,
        request_id=ids.request_id(),
        traceparent=traceparent(),
        created_by=user,
        target_type=job.target_type,
        target_id=job.target_id,
        target_name=job.target_name,
        unique_key=job.unique_key,
    )
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=job.pk)
        open_retry = _open_retry(job)
        if open_retry is not None:
            return open_retry
        new_job.save(force_insert=True)
        for key in _foreign_keys():
            rows = key.model._base_manager.filter(**{key.name: job})
            rows.update(**{key.name: new_job})
        transaction.on_commit(partial(send_if_room, new_job), robust=True)
    return new_job


def _arguments_hash(args: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(args, sort_keys=True).encode()).hexdigest()


def _open_retry(job: Job) -> Job | None:
    """Later open job with the same kind and arguments."""
    later = Job.objects.filter(lab=job.lab, created_at__gt=job.created_at).exclude(
        state__in=ENDED_STATES
    )
    return later.filter(kind=job.kind, args=job.args).first()


def _foreign_keys() -> list[models.ForeignKey[Any, Any]]:
    """Foreign keys of other models to jobs."""
    relations = Job._meta.get_fields(include_hidden=True)
    return [
        relation.field
        for relation in relations
        if isinstance(relation, models.ManyToOneRel)
        and isinstance(relation.field, models.ForeignKey)
    ]


def heartbeats_prune() -> int:
    """Delete old heartbeats; restarted workers can have new names. Returns how many."""
    expired = WorkerHeartbeat.objects.filter(last_seen_at__lt=Now() - HEARTBEAT_RETENTION)
    return expired.delete()[0]
