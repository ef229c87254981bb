"""Celery tasks, one for each kind of job, named after it and called with a job's id."""

from __future__ import annotations

import logging
import uuid

from celery import shared_task  # noqa: TID251 - the one place
from celery.exceptions import Retry
from django.db import InterfaceError, InternalError, OperationalError

from portal.core.tasks import REGISTRY
from portal.jobs.models import Job, JobState

logger = logging.getLogger(__name__)


class JobFailed(Exception):
    """Marks the Celery task as failed with the job's error code; the row has the message."""


def register_celery_tasks() -> None:
    """Register a Celery task for every kind declared with ``portal.core.tasks.job_task``."""
    for kind, spec in REGISTRY.items():
        shared_task(name=kind, queue=spec.queue, throws=(JobFailed,))(run_job)


def run_job(job_id: str) -> None:
    """Run the job if it is next, and end the Celery task in the state of the job.

    Raises:
        Retry: The job is waiting; another message will come.
        JobFailed: The job failed.
    """
    from portal.jobs.worker.batching import run_if_next
    from portal.jobs.worker.messages import send_next

    try:
        was_run = run_if_next(uuid.UUID(job_id))
        job = Job.objects.filter(pk=job_id).first()
        if was_run and job is not None and job.state == JobState.QUEUED:
            send_next(job.queue)
    except (OperationalError, InterfaceError, InternalError) as error:  # Internal: idle in a claim
        logger.warning("job %s: the database does not answer (%s)", job_id, type(error).__name__)
        raise Retry("The database does not answer.") from error
    if job is not None and job.state == JobState.QUEUED:
        raise Retry("Other jobs go first, or a later attempt is due.")
    if job is not None and job.state == JobState.FAILED:
        raise JobFailed(job.error_code)
