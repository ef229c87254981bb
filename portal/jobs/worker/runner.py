"""Runs one claimed job and writes down how it ended."""

from __future__ import annotations

import logging
import os
import socket
import time
import traceback
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import InterfaceError, OperationalError, connection
from django.db.models.functions import Now

from ml.errors import BadInputError, CancelledError, MlError
from ml.types import JsonObject
from portal.core.connections import connection_refresh, database_is_away
from portal.core.disk import is_disk_full
from portal.core.errors import StorageFullError
from portal.core.observe import ids
from portal.core.observe.traces import span
from portal.core.tasks import (
    REGISTRY,
    JobCancelled,
    JobYielded,
    LeaseLost,
    TaskSpec,
    UserError,
)
from portal.jobs import ledger
from portal.jobs.models import Job, JobState
from portal.jobs.worker.context import LedgerContext
from portal.jobs.worker.memory import FREED

logger = logging.getLogger(__name__)

UNKNOWN_FOR = timedelta(hours=1)  # longer than any upgrade leaves old workers running
AGAIN_AFTER_S = 1.0  # between two attempts to reach a database that is away
INTERNAL_ERROR = (
    "Something went wrong inside Tessera. The details were logged under the id of this job."
)

DISK_FULL = "The portal's disk is full. Try again once the IT people of your lab have made room."
FULL_BACKOFF_S = 60.0  # room is made by people


def worker_name(pid: int | None = None) -> str:
    """Host and process: enough to find a log line."""
    return f"{socket.gethostname()}:{pid or os.getpid()}"


def job_run(job_id: uuid.UUID) -> bool:
    """Claim and run this job; False if there was nothing to claim."""
    connection_refresh()
    if not _is_known(job_id):
        return False
    job = ledger.claim(job_id, worker=worker_name())
    if job is None:
        return False
    run_claimed(job)
    return True


def next_claim(job_id: uuid.UUID) -> Job | None:
    """Claim what is next in the queue of the job that a bell was rung for; None if nothing is.

    Where nothing known waits, the job itself is tried: what no release knows has to fail.
    """
    connection_refresh()
    queue = Job.objects.filter(pk=job_id).values_list("queue", flat=True).first()
    if queue is None:
        return None
    job = ledger.claim_next(queue, worker=worker_name())
    if job is None:
        job_run(job_id)
    return job


def run_claimed(job: Job, context: LedgerContext | None = None) -> None:
    """Run a claimed job to its end.

    Args:
        context: the job's, where its lease is held already.
    """
    with ids.named(request=job.request_id, job=str(job.pk)), span(f"job {job.kind}") as trace:
        spec = REGISTRY.get(job.kind)
        if spec is None:
            _fail(job, code="unknown-kind", message=f"No worker knows jobs of kind {job.kind!r}.")
            return
        logger.info("job %s %s: attempt %d begins", job.pk, job.kind, job.attempts)
        _attempt(job, spec, context or LedgerContext(job))
        if trace.is_on:
            trace.tell(
                tessera__job_id=str(job.pk),
                tessera__job_attempt=job.attempts,
                tessera__job_state=_state(job),
                tessera__request_id=job.request_id,
            )
    FREED.give_back()


def _state(job: Job) -> str:
    """Its present state; the trace is reported even while the database is unavailable."""
    try:
        return str(Job.objects.values_list("state", flat=True).get(pk=job.pk))
    except (OperationalError, InterfaceError, Job.DoesNotExist):
        return "unknown"


def _is_known(job_id: uuid.UUID) -> bool:
    """Whether this release can run it. During an upgrade a newer one may have submitted the job:
    it is left to workers of that release, and fails only if none comes for long.
    """
    waiting = Job.objects.filter(pk=job_id)
    row = waiting.values_list("kind", "payload_version").first()
    if row is None:
        return False
    spec = REGISTRY.get(row[0])
    if spec is not None and row[1] <= spec.version:
        return True
    if spec is None and waiting.filter(created_at__lt=Now() - UNKNOWN_FOR).exists():
        return True
    logger.warning("job %s %s: of a newer release; left to its workers", job_id, row[0])
    return False


def _attempt(job: Job, spec: TaskSpec, context: LedgerContext) -> None:
    """Run once; control flow by type: lost, cancelled, tell the user, retry, bug."""
    try:
        with context:
            result = spec.function(context, **arguments_of(job, spec))
        _succeed(job, context, result)
    except LeaseLost:
        logger.warning("job %s: lease lost, another worker has it", job.pk)
    except JobYielded:
        logger.info("job %s %s: gives way to more urgent work", job.pk, job.kind)
        ledger.hand_back(_held(job), message="")
    except (JobCancelled, CancelledError):
        _end(job, JobState.CANCELLED, **ledger.CANCELLED)
    except UserError as error:
        _fail(job, code=error.code, message=error.message)
    except BadInputError as error:
        _fail(job, code=error.code, message=str(error))
    except spec.retry_on as error:
        _retry_or_fail(job, spec, error)
    except MlError as error:
        _fail(job, code=error.code, message=str(error))
    except Exception as error:  # noqa: BLE001 - the one place; logged with its stack
        _unforeseen(job, spec, error)


def _unforeseen(job: Job, spec: TaskSpec, error: Exception) -> None:
    """What no task foresees: a full disk and a database that is away pass, the rest is a bug."""
    if is_disk_full(error):
        _retry_or_fail(job, spec, error)
    elif database_is_away(error):
        _wait_and_hand_back(job)
    else:
        _fail_as_bug(job)


def _fail_as_bug(job: Job) -> None:
    logger.exception("job %s %s: bug", job.pk, job.kind)
    _fail(job, code="internal", message=INTERNAL_ERROR, trace=traceback.format_exc())


def _wait_and_hand_back(job: Job) -> None:
    """Give the job back once the database is there again. Where that takes longer than a lease the
    reaper takes it.
    """
    logger.warning("job %s %s: the database does not answer", job.pk, job.kind)
    deadline_s = time.monotonic() + ledger.lease_length().total_seconds()
    while time.monotonic() < deadline_s:
        connection.close()
        try:
            ledger.hand_back(
                _held(job), message="The database did not answer for a while; continuing."
            )
        except (OperationalError, InterfaceError):
            time.sleep(AGAIN_AFTER_S)
        else:
            return


def arguments_of(job: Job, spec: TaskSpec) -> JsonObject:
    """The job's arguments as this release has them."""
    found = dict(job.args)
    if spec.upgrade is not None and job.payload_version < spec.version:
        found = spec.upgrade(found, job.payload_version)
    return found


def _succeed(job: Job, context: LedgerContext, result: Mapping[str, Any] | None) -> None:
    found = dict(result or {})
    if context.has_effect:  # it ended with its effect; only the result is still to be told
        Job.objects.filter(pk=job.pk, lease_token=context.token).update(result=found)
    elif not _end(job, JobState.SUCCEEDED, result=found):
        logger.warning("job %s: finished, but its lease was lost", job.pk)
    logger.info("job %s %s: done", job.pk, job.kind)


def _retry_or_fail(job: Job, spec: TaskSpec, error: Exception) -> None:
    if job.attempts >= job.max_attempts:
        logger.exception("job %s %s: attempts spent", job.pk, job.kind)
        if is_disk_full(error):
            _fail(job, code=StorageFullError.code, message=DISK_FULL)
            return
        message = f"Gave up after {job.attempts} attempts. {INTERNAL_ERROR}"
        _fail(job, code="attempts-spent", message=message, trace=traceback.format_exc())
        return
    backoff_s = FULL_BACKOFF_S if is_disk_full(error) else spec.backoff_s
    delay_s = backoff_s * 2 ** (job.attempts - 1)
    logger.warning("job %s %s: %s; again in %.0f s", job.pk, job.kind, error, delay_s)
    ledger.requeue(
        _held(job), delay_s=delay_s, message=f"Attempt {job.attempts} failed; trying again."
    )


def _fail(job: Job, *, code: str, message: str, trace: str = "") -> None:
    logger.info("job %s %s: failed: %s", job.pk, job.kind, code)  # the message may name a file
    _end(job, JobState.FAILED, error_code=code, error_message=message, traceback=trace)


def _end(job: Job, state: JobState, **changes: Any) -> bool:
    return ledger.end(_held(job), job.pk, state, **changes)


def _held(job: Job) -> Any:
    if job.lease_token is None:
        raise LeaseLost(f"job {job.pk}")
    return ledger.held(job.pk, job.lease_token)
