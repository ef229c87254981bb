"""Finds what fell silent or was never heard, and sets it going again.

Cost: two indexed queries a pass, plus one message for each job rung.
"""

from __future__ import annotations

import logging
import threading
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Q
from django.utils import timezone

from portal.core.connections import connection_refresh
from portal.core.housekeeping import Calendar
from portal.jobs import ledger
from portal.jobs.models import Job, JobState
from portal.jobs.worker.bell import ring

logger = logging.getLogger(__name__)

# A long queue is rung bit by bit: workers drain it, so the newest need no second bell yet.
RING_AT_MOST = 100
LOST = "The worker that ran this job went away, each time it was tried."


def reap() -> tuple[int, int]:
    """One pass. Returns how many lost jobs were taken back and how many bells were rung."""
    return _take_back_lost(), _ring_unheard()


def reap_forever(stop: threading.Event) -> None:
    """Pass after pass until ``stop``; a database that is away is waited for."""
    calendar = Calendar()
    while not stop.wait(settings.TESSERA_JOB_REAP_EVERY_S):
        try:
            connection_refresh()
            lost, rung = reap()
            calendar.run_due()
        except DatabaseError:
            logger.warning("reaper: database away", exc_info=True)
            continue
        if lost or rung:
            logger.info("reaper: %d taken back, %d rung", lost, rung)


def _take_back_lost() -> int:
    now = timezone.now()
    count = 0
    for job in Job.objects.filter(state=JobState.RUNNING, lease_until__lt=now)[:RING_AT_MOST]:
        if job.lease_token is None:
            continue
        guard = ledger.held(job.pk, job.lease_token).filter(lease_until__lt=now)
        if job.cancel_requested:
            count += ledger.end(
                guard,
                job.pk,
                JobState.CANCELLED,
                error_code="cancelled",
                error_message="Cancelled.",
            )
        elif job.attempts >= job.max_attempts:
            count += ledger.end(
                guard, job.pk, JobState.FAILED, error_code="worker-lost", error_message=LOST
            )
        else:
            count += ledger.requeue(
                guard, delay_s=0, message=f"Attempt {job.attempts} was lost; trying again."
            )
    return count


def _ring_unheard() -> int:
    now = timezone.now()
    stale = now - timedelta(seconds=settings.TESSERA_JOB_RING_AFTER_S)
    due = (
        Job.objects.filter(state=JobState.QUEUED)
        .filter(Q(not_before=None) | Q(not_before__lte=now))
        .filter(Q(rung_at=None, created_at__lt=now - timedelta(seconds=1)) | Q(rung_at__lt=stale))
        .order_by("created_at")
        .values_list("pk", "queue")[:RING_AT_MOST]
    )
    return sum(ring(job_id, queue=queue) for job_id, queue in due)
