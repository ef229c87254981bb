"""Reads of the ledger."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from portal.core.errors import NotFoundError
from portal.jobs.models import Job, JobState, WorkerSign
from portal.labs.models import User

WORKER_SILENT_AFTER = timedelta(seconds=45)


def job_list(*, user: User, state: str = "", kind: str = "") -> QuerySet[Job]:
    """The jobs this person may see, newest first."""
    jobs = Job.objects.visible_to(user).select_related("created_by", "lab")
    if state in JobState.values:
        jobs = jobs.filter(state=state)
    if kind:
        jobs = jobs.filter(kind=kind)
    return jobs


def job_get(*, user: User, job_id: uuid.UUID) -> Job:
    """One job, or ``NotFoundError``."""
    job = job_list(user=user).filter(pk=job_id).first()
    if job is None:
        raise NotFoundError("No such job.")
    return job


def job_latest_for(*, target_type: str, target_ids: list[uuid.UUID]) -> dict[uuid.UUID, Job]:
    """The newest job of each target, in one query. The caller has checked that it may see them."""
    jobs = Job.objects.filter(target_type=target_type, target_id__in=target_ids)
    return {job.target_id: job for job in jobs.order_by("created_at") if job.target_id}


def workers_alive() -> QuerySet[WorkerSign]:
    """Workers heard of lately."""
    return WorkerSign.objects.filter(seen_at__gt=timezone.now() - WORKER_SILENT_AFTER)
