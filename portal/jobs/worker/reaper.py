"""Finds what fell silent or was never heard, and sets it going again.

Cost: two indexed queries a pass, plus one message for each job rung.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Q
from django.db.models.functions import Now

from portal.core.connections import connection_refresh
from portal.core.housekeeping import Calendar, run_each_pass
from portal.jobs import ledger
from portal.jobs.models import WORKER_LOST, Job, JobState
from portal.jobs.selectors import REAPER_QUEUES
from portal.jobs.selectors.turns import jobs_due
from portal.jobs.worker import heartbeat
from portal.jobs.worker.bell import ring
from portal.jobs.worker.runner import worker_name
from portal.jobs.worker.scratch import scratch_drop, scratch_of

logger = logging.getLogger(__name__)

# A long queue is rung bit by bit: workers drain it, so the newest need no second bell yet.
RING_AT_MOST = 100
LOST = "The worker that ran this job was lost each time it was tried."


def reap(*, take_back: bool = True) -> tuple[int, int]:
    """One pass. Returns how many lost jobs were taken back and how many bells were rung."""
    return _take_back_lost() if take_back else 0, _ring_unheard()


class Grace:
    """While the database was away nobody could renew a lease: each worker gets one lease's time."""

    def __init__(self) -> None:
        self._until_s = 0.0

    def database_away(self) -> None:
        """It does not answer now."""
        self._until_s = time.monotonic() + ledger.lease_length().total_seconds()

    def is_over(self) -> bool:
        """Whether an expired lease means a lost worker."""
        return time.monotonic() >= self._until_s


def reap_forever(stop: threading.Event) -> None:
    """Pass after pass until ``stop``; waits for a database that is away."""
    calendar, grace, signed_s = Calendar(), Grace(), 0.0
    while not stop.wait(settings.TESSERA_JOB_REAP_EVERY_S):
        try:
            connection_refresh()
            lost, rung = reap(take_back=grace.is_over())
            if time.monotonic() - signed_s >= heartbeat.EVERY_S:
                heartbeat.sign(f"reaper@{worker_name()}", REAPER_QUEUES)
                signed_s = time.monotonic()
            try:
                run_each_pass()
            finally:  # daily chores run even if one of each pass fails
                calendar.run_due()
        except DatabaseError:
            grace.database_away()
            logger.warning("reaper: the database does not answer", exc_info=True)
            continue
        if lost or rung:
            logger.info("reaper: %d requeued, %d rung", lost, rung)


def _take_back_lost() -> int:
    lost = Job.objects.filter(state=JobState.RUNNING, lease_until__lt=Now())[:RING_AT_MOST]
    return sum(_take_back(job, job.lease_token) for job in lost if job.lease_token is not None)


def _take_back(job: Job, token: uuid.UUID) -> bool:
    """False if its worker renewed the lease after all, or another pass was quicker."""
    guard = ledger.held(job.pk, token).filter(lease_until__lt=Now())
    left = scratch_of(job.pk)  # looked up before the next attempt can make its own
    if job.cancel_requested:
        taken = ledger.end(guard, job.pk, JobState.CANCELLED, **ledger.CANCELLED)
    elif job.attempts >= job.max_attempts:
        taken = ledger.end(
            guard, job.pk, JobState.FAILED, error_code=WORKER_LOST, error_message=LOST
        )
    else:
        taken = ledger.requeue(
            guard, delay_s=0, message=f"Attempt {job.attempts} was lost; trying again."
        )
    if taken:
        scratch_drop(left)
    return taken


def _ring_unheard() -> int:
    stale = Now() - timedelta(seconds=settings.TESSERA_JOB_RING_AFTER_S)
    due = (
        jobs_due()
        .filter(Q(rung_at=None) | Q(rung_at__lt=stale))
        .order_by("priority", "created_at")
        .values_list("pk", "queue")[:RING_AT_MOST]
    )
    return sum(ring(job_id, queue=queue) for job_id, queue in due)
