"""The doorbell: the only Celery task. Losing or repeating its messages does no harm."""

from __future__ import annotations

import logging
import uuid

from celery import current_app, shared_task  # noqa: TID251 - the one place
from django.db import InterfaceError, OperationalError
from django.db.models.functions import Now
from kombu.exceptions import KombuError

from portal.jobs.models import Job, JobState

logger = logging.getLogger(__name__)

# A request must not hang because the broker is away: the reaper rings again later.
RING_RETRIES = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2}


def ring(job_id: uuid.UUID, *, queue: str) -> bool:
    """Tell the workers of ``queue`` to look at the job. False if the broker is unreachable."""
    try:
        current_app.send_task(
            "jobs.run", args=[str(job_id)], queue=queue, retry=True, retry_policy=RING_RETRIES
        )
    except (KombuError, OSError) as error:
        logger.warning("job %s: doorbell not rung (%s); the reaper will ring it", job_id, error)
        return False
    Job.objects.filter(pk=job_id).update(rung_at=Now())
    return True


@shared_task(name="jobs.run")
def run(job_id: str) -> None:
    """Run the job of this queue whose turn it is: the one that the bell was rung for, or another
    that goes before it and whose own bell then finds this one. Does nothing if nothing waits.
    """
    from portal.jobs.worker.together import next_run

    try:
        job = next_run(uuid.UUID(job_id))
        if job is not None and Job.objects.filter(pk=job.pk, state=JobState.QUEUED).exists():
            ring(job.pk, queue=job.queue)  # it gave way
    except (OperationalError, InterfaceError) as error:
        logger.warning("job %s: the database does not answer (%s)", job_id, type(error).__name__)
