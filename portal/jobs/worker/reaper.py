"""Requeue jobs whose worker was lost, send unclaimed jobs again, and run regular chores."""

from __future__ import annotations

import logging
import threading
import time
import uuid

from django.conf import settings
from django.db import DatabaseError
from django.db.models.functions import Now

from portal.core.connections import connection_refresh
from portal.core.housekeeping import Calendar, run_each_pass
from portal.core.tasks import QUEUES, REGISTRY
from portal.jobs import claims
from portal.jobs.models import WORKER_LOST, Job, JobState
from portal.jobs.selectors.jobs import REAPER_QUEUES, process_count
from portal.jobs.selectors.scheduling import jobs_due
from portal.jobs.worker import heartbeat
from portal.jobs.worker.messages import send_next
from portal.jobs.worker.runner import UNKNOWN_KIND_TIMEOUT, job_run, worker_name
from portal.jobs.worker.scratch import scratch_drop, scratch_of

logger = logging.getLogger(__name__)

MAX_JOBS_PER_PASS = 100
LOST_MESSAGE = "The worker that ran this job was lost each time it was tried."


def reap(*, recover_lost: bool = True) -> tuple[int, int]:
    """Run one pass; returns how many lost jobs were recovered and how many messages were sent."""
    lost = _recover_lost_jobs() if recover_lost else 0
    _fail_unknown()
    return lost, sum(send_next(queue) for queue in QUEUES if _has_idle_process(queue))


class OutageGrace:
    """Delay before leases count as lost after an outage, in which no worker could renew them."""

    def __init__(self) -> None:
        self._until_s = 0.0

    def note_outage(self) -> None:
        """Restart the delay: the database does not answer."""
        self._until_s = time.monotonic() + claims.lease_duration().total_seconds()

    def is_over(self) -> bool:
        """Return whether an expired lease again means a lost worker."""
        return time.monotonic() >= self._until_s


def reap_forever(stop: threading.Event) -> None:
    """Run passes until ``stop`` is set, also after database errors."""
    calendar, grace, heartbeat_s = Calendar(), OutageGrace(), 0.0
    while not stop.wait(settings.TESSERA_JOB_REAP_EVERY_S):
        try:
            connection_refresh()
            lost_count, sent_count = reap(recover_lost=grace.is_over())
            if time.monotonic() - heartbeat_s >= heartbeat.HEARTBEAT_EVERY_S:
                heartbeat.write_heartbeat(f"reaper@{worker_name()}", REAPER_QUEUES)
                heartbeat_s = time.monotonic()
            try:
                run_each_pass()
            finally:  # daily chores run even if one of each pass fails
                calendar.run_due()
        except DatabaseError:
            grace.note_outage()
            logger.warning("reaper: the database does not answer", exc_info=True)
            continue
        if lost_count or sent_count:
            logger.info("reaper: %d requeued, %d sent", lost_count, sent_count)


def _recover_lost_jobs() -> int:
    lost = Job.objects.filter(state=JobState.RUNNING, lease_until__lt=Now())[:MAX_JOBS_PER_PASS]
    return sum(_recover(job, job.lease_token) for job in lost if job.lease_token is not None)


def _recover(job: Job, token: uuid.UUID) -> bool:
    """Requeue or end a lost job; False if its worker or another reaper was faster."""
    guard = claims.leased_job(job.pk, token).filter(lease_until__lt=Now())
    folders = scratch_of(job.pk)  # listed before the next attempt can create its own
    if job.cancel_requested:
        is_recovered = claims.end_job(guard, job.pk, JobState.CANCELLED, **claims.CANCELLED)
    elif job.attempts >= job.max_attempts:
        is_recovered = claims.end_job(
            guard, job.pk, JobState.FAILED, error_code=WORKER_LOST, error_message=LOST_MESSAGE
        )
    else:
        is_recovered = claims.requeue(
            guard, delay_s=0, message=f"Attempt {job.attempts} was lost; trying again."
        )
    if is_recovered:
        scratch_drop(folders)
    return is_recovered


def _has_idle_process(queue: str) -> bool:
    """Return whether a worker could take a job now; otherwise messages just wait in the broker."""
    running = Job.objects.filter(queue=queue, state=JobState.RUNNING).count()
    return running < max(1, process_count(queue))


def _fail_unknown() -> None:
    """Fail jobs of unknown kinds that a newer release would have taken by now."""
    unknown = (
        jobs_due().filter(created_at__lt=Now() - UNKNOWN_KIND_TIMEOUT).exclude(kind__in=REGISTRY)
    )
    for job_id in unknown.values_list("pk", flat=True)[:MAX_JOBS_PER_PASS]:
        job_run(job_id)
