"""Progress of jobs: a moving line on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Collection

from django.db import connection

from portal.jobs.models import Job, JobState

WIDTH = 28  # characters of the bar; the line fits 80 columns
POLL_S = 0.25  # smooth for the bar, light for the database
LONGEST_WAIT_S = 1800.0  # the demo takes minutes on two cores; beyond this something hangs


def jobs_wait(ids: Collection[uuid.UUID], *, title: str) -> list[Job]:
    """Wait until all jobs have ended; return them in order of creation."""
    began = time.monotonic()
    while True:
        jobs = list(Job.objects.filter(pk__in=ids).order_by("created_at"))
        ended = [job for job in jobs if job.has_ended]
        _show(jobs, title, time.monotonic() - began, is_last=len(ended) == len(jobs))
        if len(ended) == len(jobs):
            return jobs
        if time.monotonic() - began > LONGEST_WAIT_S:
            raise TimeoutError(f"{title}: still not done after {LONGEST_WAIT_S:.0f} s")
        connection.close()  # no open read between two looks
        time.sleep(POLL_S)


def _show(jobs: list[Job], title: str, elapsed_s: float, *, is_last: bool) -> None:
    share = sum(1.0 if job.has_ended else job.percent / 100 for job in jobs) / max(1, len(jobs))
    ended_count = sum(job.has_ended for job in jobs)
    failed_count = sum(job.state == JobState.FAILED for job in jobs)
    running = next((job.phase for job in jobs if job.state == JobState.RUNNING), "")
    bar = "█" * round(WIDTH * share) + "·" * (WIDTH - round(WIDTH * share))
    note = f", {failed_count} failed" if failed_count else ""
    line = f"  {title:<26} {bar} {ended_count}/{len(jobs)}{note}  {elapsed_s:5.1f} s"
    if sys.stdout.isatty():
        tail = "\n" if is_last else f"  {running[:30]}"
        sys.stdout.write(f"\r\x1b[K{line}{tail}")
    elif is_last:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
