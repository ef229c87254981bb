"""Run a claimed job, in a batch with waiting jobs of its kind where the kind allows it."""

from __future__ import annotations

import logging
import time
import uuid
from contextlib import ExitStack

from portal.core.connections import connection_refresh
from portal.core.observe import ids
from portal.core.tasks import REGISTRY, Batching, JobCancelled, LeaseLost, TaskSpec
from portal.jobs import claims
from portal.jobs.models import Job
from portal.jobs.worker import runner
from portal.jobs.worker.context import LeasedJobContext
from portal.jobs.worker.messages import send_all

logger = logging.getLogger(__name__)


def run_if_next(job_id: uuid.UUID) -> bool:
    """Run this job unless another goes first, and send the messages of the next jobs.

    Returns:
        Whether the job was run.
    """
    connection_refresh()
    job, unsent = claims.claim_if_next(job_id, worker=runner.worker_name())
    send_all(unsent)
    if job is not None:
        run_batched(job)
    return job is not None


def run_batched(first: Job) -> None:
    """Run a claimed job, after a batch with the next waiting jobs if its kind has ``Batching``.

    Each job of the batch then runs, fails or is cancelled independently.
    """
    spec = REGISTRY.get(first.kind)
    with ExitStack() as stack:
        batch = [_hold_lease(first, stack)]  # renewed while the other jobs are claimed
        if spec is not None and spec.batching is not None:
            batch += [_hold_lease(job, stack) for job in _claim_others(first, spec.batching)]
            if len(batch) > 1:
                _run_batch(spec, spec.batching, batch)
        for job, context in batch:
            runner.run_claimed(job, context)


def _hold_lease(job: Job, stack: ExitStack) -> tuple[Job, LeasedJobContext]:
    with ids.log_ids(request=job.request_id, job=str(job.pk)):
        context = LeasedJobContext(job)
    stack.callback(context.close)
    context.start()
    return job, context


def _claim_others(first: Job, batching: Batching) -> list[Job]:
    try:
        return claims.claim_batch(first, batching, worker=runner.worker_name())
    except Exception:
        logger.warning("job %s: no other jobs claimed for its batch", first.pk, exc_info=True)
        return []


def _run_batch(
    spec: TaskSpec, batching: Batching, batch: list[tuple[Job, LeasedJobContext]]
) -> None:
    start_s = time.perf_counter()
    pairs = [(context, runner.arguments_of(job, spec)) for job, context in batch]
    try:
        results = batching.run(pairs)
    except (JobCancelled, LeaseLost):
        return  # each job handles this itself when it runs
    except Exception:
        logger.warning("batch of %d jobs %s failed", len(batch), spec.kind, exc_info=True)
        return
    for (_, context), result in zip(batch, results, strict=True):
        context.batch_result = result
    seconds = time.perf_counter() - start_s
    logger.info("batch of %d jobs %s took %.1f s", len(batch), spec.kind, seconds)
