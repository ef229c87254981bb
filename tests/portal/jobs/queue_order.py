"""Run or claim the next job of a queue as a worker does."""

from __future__ import annotations

from portal.jobs import claims
from portal.jobs.models import Job
from portal.jobs.selectors.scheduling import next_jobs
from portal.jobs.worker.batching import run_if_next


def run_next(queue: str = "default") -> Job | None:
    """Run it."""
    for job in next_jobs(queue, 1):
        assert run_if_next(job.pk)
        return job
    return None


def claim_next(queue: str = "default") -> Job | None:
    """Claim it."""
    for job in next_jobs(queue, 1):
        return claims.claim_if_next(job.pk, worker="w").job
    return None
