"""Writes of the ledger that people and other apps ask for."""

from __future__ import annotations

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
from portal.core.tasks import REGISTRY, Priority
from portal.jobs import ledger
from portal.jobs.models import ENDED, Job, JobState, WorkerSign
from portal.jobs.worker.bell import ring
from portal.labs.models import Lab, Role, User
from portal.labs.rules import has_role, require_role

SIGNS_KEPT = timedelta(days=7)  # somebody may ask about a worker that died last week
CANCEL_CHUNK = 500  # jobs in a transaction: SQLite's other writers wait for it


@dataclass(frozen=True, slots=True)
class JobsCancelled:
    """What became of jobs that were cancelled together.

    Attributes:
        cancelled: ended at once. stopping: at work, and told to stop.
        kept: others' jobs, which only a manager may cancel; or ended in the meantime.
    """

    cancelled: int
    stopping: int
    kept: int


def job_submit(
    *,
    kind: str,
    args: Mapping[str, Any],
    lab: Lab,
    user: User | None,
    target: models.Model | None = None,
    target_name: str = "",
    idempotency_key: str | None = None,
    priority: Priority | None = None,
) -> Job:
    """Write a job row; the doorbell is rung when the caller's transaction commits.

    Args:
        kind: as registered with ``portal.core.tasks.task``.
        args: JSON-able ids, passed to the task as keywords.
        idempotency_key: unique in the lab: the same key gives the job that has it, until that job
            failed or was cancelled.
        priority: another than that of the kind.
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
        waiting, job.pk, JobState.CANCELLED, cancel_requested=True, **ledger.CANCELLED
    )
    if not ended:
        flagged = Job.objects.filter(pk=job.pk, state=JobState.RUNNING).update(
            cancel_requested=True, updated_at=Now()
        )
        if not flagged:
            raise ConflictError("This job has already ended.", code="job-ended")
    job.refresh_from_db()
    return job


def jobs_cancel(*, jobs: QuerySet[Job], user: User) -> JobsCancelled:
    """Stop many jobs: each as ``job_cancel`` would, except for those that this person may not stop.

    Args:
        jobs: seen by ``user``.
    Raises:
        InvalidInputError: none of them is waiting or running.
        ForbiddenError: a viewer, who may stop none.
    """
    open_jobs = jobs.filter(state__in=(JobState.QUEUED, JobState.RUNNING)).order_by("pk")
    rows = list(open_jobs.values_list("pk", "lab_id", "created_by_id"))
    if not rows:
        raise InvalidInputError("None of these jobs is waiting or running.", code="nothing-open")
    labs = {lab_id for _, lab_id, _ in rows}
    all_of = {lab_id for lab_id in labs if has_role(user, lab_id, at_least=Role.MANAGER)}
    own_of = {lab_id for lab_id in labs if has_role(user, lab_id, at_least=Role.ANNOTATOR)}
    if not own_of:
        require_role(user, rows[0][1], at_least=Role.ANNOTATOR)
    cancelled = stopping = 0
    for lab_id in labs:
        ids = [
            pk
            for pk, lab, person in rows
            if lab == lab_id and (lab in all_of or (lab in own_of and person == user.pk))
        ]
        for start in range(0, len(ids), CANCEL_CHUNK):
            chunk = ids[start : start + CANCEL_CHUNK]
            cancelled += ledger.end_all(chunk, lab_id=lab_id)
            running = Job.objects.filter(pk__in=chunk, state=JobState.RUNNING)
            stopping += running.update(cancel_requested=True, updated_at=Now())
    return JobsCancelled(cancelled, stopping, len(rows) - cancelled - stopping)


def job_retry(*, job: Job, user: User) -> Job:
    """Submit the work of a failed or cancelled job again, as a new row; once, even if asked twice.

    Keys of any model that name the job then name the new one. ``ConflictError`` in another state.
    """
    require_role(user, job.lab_id, at_least=Role.ANNOTATOR)
    if job.state not in (JobState.FAILED, JobState.CANCELLED):
        raise ConflictError("Only a failed or cancelled job can be tried again.", code="job-state")
    spec = REGISTRY[job.kind]
    again = Job(
        lab=job.lab,
        kind=job.kind,
        queue=spec.queue,
        priority=job.priority,
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
        Job.objects.select_for_update().get(pk=job.pk)
        known = _open_again(job)
        if known is not None:
            return known
        again.save(force_insert=True)
        for pointer in _pointers():
            rows = pointer.model._base_manager.filter(**{pointer.name: job})
            rows.update(**{pointer.name: again})
        transaction.on_commit(partial(ring, again.pk, queue=again.queue))
    return again


def _open_again(job: Job) -> Job | None:
    """A later job that already does its work and has not ended."""
    later = Job.objects.filter(lab=job.lab, created_at__gt=job.created_at).exclude(state__in=ENDED)
    return later.filter(kind=job.kind, args=job.args).first()


def _pointers() -> list[models.ForeignKey[Any, Any]]:
    """The keys of other apps' models that name a job."""
    relations = Job._meta.get_fields(include_hidden=True)
    return [
        relation.field
        for relation in relations
        if isinstance(relation, models.ManyToOneRel)
        and isinstance(relation.field, models.ForeignKey)
    ]


def signs_prune() -> int:
    """Forget workers that nobody heard of for a week: each start of one has a name of its own."""
    old = WorkerSign.objects.filter(seen_at__lt=Now() - SIGNS_KEPT)
    return old.delete()[0]
