"""Messages to workers; each starts the Celery task of a job's kind with the job's id.

Only the first jobs of a queue have a message, so that the order of the others can still change.
Lost and repeated messages do no harm, since the job's row decides whether it is run.
"""

from __future__ import annotations

import logging

from celery import current_app
from kombu.exceptions import KombuError

from portal.jobs import claims
from portal.jobs.models import Job

logger = logging.getLogger(__name__)

# A request must not hang while the broker is down; the reaper sends the message later.
RETRY_POLICY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2}


def send_if_room(job: Job) -> None:
    """Send the message of a new job unless enough are unclaimed; each claim sends further ones."""
    if claims.mark_sent_if_room(job):
        send_all([job])


def send_next(queue: str) -> int:
    """Send messages for the first jobs of a queue that have none; returns how many."""
    return send_all(claims.mark_sent(queue))


def send_all(jobs: list[Job]) -> int:
    """Send the messages of jobs that are marked as sent; returns how many the broker took."""
    for number, job in enumerate(jobs):
        if not send(job):
            claims.mark_unsent(jobs[number:])
            return number
    return len(jobs)


def send(job: Job) -> bool:
    """Send the message of a job. False if the broker cannot be reached."""
    try:
        current_app.send_task(
            job.kind, args=[str(job.pk)], queue=job.queue, retry=True, retry_policy=RETRY_POLICY
        )
    except (KombuError, OSError, ValueError) as error:  # ValueError: a damaged file of the broker
        logger.warning("job %s: message not sent (%s); the reaper will send it", job.pk, error)
        return False
    return True
