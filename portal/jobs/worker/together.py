"""Runs a claimed job, and with it those that wait behind it and can be worked on together."""

from __future__ import annotations

import logging
import time
import uuid
from contextlib import ExitStack

from portal.core.observe import ids
from portal.core.tasks import REGISTRY, Ahead, JobCancelled, LeaseLost, TaskSpec
from portal.jobs import ledger
from portal.jobs.models import Job
from portal.jobs.worker import runner
from portal.jobs.worker.context import LedgerContext

logger = logging.getLogger(__name__)


def next_run(job_id: uuid.UUID) -> Job | None:
    """Run what is next in the queue of the job that a bell was rung for; None if nothing is."""
    job = runner.next_claim(job_id)
    if job is not None:
        run_with_others(job)
    return job


def run_with_others(first: Job) -> None:
    """Run it. Where its kind knows ``Ahead``, take those alike that are next, do their common work
    at once, then run each by itself: every job ends, fails or is cancelled on its own.
    """
    spec = REGISTRY.get(first.kind)
    with ExitStack() as stack:
        held = [_held(first, stack)]  # its lease is renewed while the others are looked for
        if spec is not None and spec.ahead is not None:
            held += [_held(job, stack) for job in _others(first, spec.ahead)]
            if len(held) > 1:
                _work_ahead(spec, spec.ahead, held)
        for job, context in held:
            runner.run_claimed(job, context)


def _held(job: Job, stack: ExitStack) -> tuple[Job, LedgerContext]:
    with ids.named(request=job.request_id, job=str(job.pk)):
        context = LedgerContext(job)
    stack.callback(context.close)
    context.start()
    return job, context


def _others(first: Job, ahead: Ahead) -> list[Job]:
    try:
        return ledger.claim_alongside(first, ahead, worker=runner.worker_name())
    except Exception:
        logger.warning("job %s: did not look for others to run with it", first.pk, exc_info=True)
        return []


def _work_ahead(spec: TaskSpec, ahead: Ahead, held: list[tuple[Job, LedgerContext]]) -> None:
    began_s = time.perf_counter()
    pairs = [(context, runner.arguments_of(job, spec)) for job, context in held]
    try:
        found = ahead.work(pairs)
    except (JobCancelled, LeaseLost):
        return  # each hears of it when it runs
    except Exception:
        logger.warning("%d jobs %s: not run together", len(held), spec.kind, exc_info=True)
        return
    for (_, context), result in zip(held, found, strict=True):
        context.ahead = result
    seconds = time.perf_counter() - began_s
    logger.info("%d jobs %s: run together in %.1f s", len(held), spec.kind, seconds)
