"""Run claimed jobs and record how they end."""

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
from opentelemetry import propagate

from ml.errors import BadInputError, CancelledError, MlError
from ml.types import JsonObject
from portal.core.connections import connection_refresh, database_is_away
from portal.core.disk import is_disk_full
from portal.core.errors import StorageFullError
from portal.core.observe import ids, traces
from portal.core.tasks import (
    REGISTRY,
    JobCancelled,
    JobYielded,
    LeaseLost,
    TaskSpec,
    UserError,
)
from portal.jobs import claims
from portal.jobs.models import Job, JobState
from portal.jobs.worker.context import LeasedJobContext
from portal.jobs.worker.memory import TRIMMER

logger = logging.getLogger(__name__)

UNKNOWN_KIND_TIMEOUT = timedelta(hours=1)  # longer than old workers keep running in an upgrade
RECONNECT_PAUSE_S = 1.0  # between two attempts to reach the database
INTERNAL_ERROR = (
    "Something went wrong inside Tessera. The details were logged under the id of this job."
)

DISK_FULL = "The portal's disk is full. Try again once the IT people of your lab have made room."
DISK_FULL_BACKOFF_S = 60.0  # somebody has to free space


def worker_name(pid: int | None = None) -> str:
    """Name of a worker process, from its host and process id."""
    return f"{socket.gethostname()}:{pid or os.getpid()}"


def job_run(job_id: uuid.UUID) -> bool:
    """Claim and run this job; False if it cannot be claimed."""
    connection_refresh()
    if not _is_runnable(job_id):
        return False
    job = claims.claim(job_id, worker=worker_name())
    if job is None:
        return False
    run_claimed(job)
    return True


def run_claimed(job: Job, context: LeasedJobContext | None = None) -> None:
    """Run a claimed job.

    Args:
        context: Context of the job if its heartbeat runs already.
    """
    parent = propagate.extract({"traceparent": job.traceparent})
    with (
        ids.log_ids(request=job.request_id, job=str(job.pk)),
        traces.tracer.start_as_current_span(f"job {job.kind}", parent) as span,
    ):
        spec = REGISTRY.get(job.kind)
        if spec is None:
            _fail(job, code="unknown-kind", message=f"No worker knows jobs of kind {job.kind!r}.")
            return
        logger.info("job %s %s: attempt %d begins", job.pk, job.kind, job.attempts)
        _attempt(job, spec, context or LeasedJobContext(job))
        if span.is_recording():
            span.set_attributes(
                {
                    "tessera.job_id": str(job.pk),
                    "tessera.job_attempt": job.attempts,
                    "tessera.job_state": _state(job),
                    "tessera.request_id": job.request_id,
                }
            )
    TRIMMER.trim_after_job()


def _state(job: Job) -> str:
    """Current state of a job; ``unknown`` while the database is unavailable."""
    try:
        return str(Job.objects.values_list("state", flat=True).get(pk=job.pk))
    except (OperationalError, InterfaceError, Job.DoesNotExist):
        return "unknown"


def _is_runnable(job_id: uuid.UUID) -> bool:
    """Return whether this release can run the job.

    During an upgrade a newer release may have submitted it. It is left to workers of that release
    and fails only if none claims it for ``UNKNOWN_KIND_TIMEOUT``.
    """
    waiting = Job.objects.filter(pk=job_id)
    row = waiting.values_list("kind", "payload_version").first()
    if row is None:
        return False
    spec = REGISTRY.get(row[0])
    if spec is not None and row[1] <= spec.version:
        return True
    if spec is None and waiting.filter(created_at__lt=Now() - UNKNOWN_KIND_TIMEOUT).exists():
        return True
    logger.warning("job %s %s: of a newer release; left to its workers", job_id, row[0])
    return False


def _attempt(job: Job, spec: TaskSpec, context: LeasedJobContext) -> None:
    """Run the task once and end, requeue or release the job by the exception it raised."""
    try:
        with context:
            result = spec.function(context, **arguments_of(job, spec))
        _succeed(job, context, result)
    except LeaseLost:
        logger.warning("job %s: lease lost, another worker has it", job.pk)
    except JobYielded:
        logger.info("job %s %s: yields to other jobs", job.pk, job.kind)
        claims.release(_leased_row(job), message="")
    except (JobCancelled, CancelledError):
        _end(job, JobState.CANCELLED, **claims.CANCELLED)
    except UserError as error:
        _fail(job, code=error.code, message=error.message)
    except BadInputError as error:
        _fail(job, code=error.code, message=str(error))
    except spec.retry_on as error:
        _retry_or_fail(job, spec, error)
    except MlError as error:
        _fail(job, code=error.code, message=str(error))
    except Exception as error:  # noqa: BLE001 - the task runner; logged with its stack
        _handle_unexpected(job, spec, error)


def _handle_unexpected(job: Job, spec: TaskSpec, error: Exception) -> None:
    """Handle unexpected exceptions: retry on a full disk or a lost database, else fail."""
    if is_disk_full(error):
        _retry_or_fail(job, spec, error)
    elif database_is_away(error):
        _release_after_outage(job)
    else:
        _fail_as_bug(job)


def _fail_as_bug(job: Job) -> None:
    logger.exception("job %s %s: bug", job.pk, job.kind)
    _fail(job, code="internal", message=INTERNAL_ERROR, trace=traceback.format_exc())


def _release_after_outage(job: Job) -> None:
    """Release the job once the database answers again.

    If that takes longer than a lease, the reaper requeues the job.
    """
    logger.warning("job %s %s: the database does not answer", job.pk, job.kind)
    deadline_s = time.monotonic() + claims.lease_duration().total_seconds()
    while time.monotonic() < deadline_s:
        connection.close()
        try:
            claims.release(
                _leased_row(job), message="The database did not answer for a while; continuing."
            )
        except (OperationalError, InterfaceError):
            time.sleep(RECONNECT_PAUSE_S)
        else:
            return


def arguments_of(job: Job, spec: TaskSpec) -> JsonObject:
    """Arguments of a job, upgraded to the version of this release."""
    args = dict(job.args)
    if spec.upgrade is not None and job.payload_version < spec.version:
        args = spec.upgrade(args, job.payload_version)
    return args


def _succeed(job: Job, context: LeasedJobContext, result: Mapping[str, Any] | None) -> None:
    data = dict(result or {})
    if context.has_effect:  # effect() has ended the job; only the result is missing
        Job.objects.filter(pk=job.pk, lease_token=context.token).update(result=data)
    elif not _end(job, JobState.SUCCEEDED, result=data):
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
    backoff_s = DISK_FULL_BACKOFF_S if is_disk_full(error) else spec.backoff_s
    delay_s = backoff_s * 2 ** (job.attempts - 1)
    logger.warning("job %s %s: %s; again in %.0f s", job.pk, job.kind, error, delay_s)
    claims.requeue(
        _leased_row(job), delay_s=delay_s, message=f"Attempt {job.attempts} failed; trying again."
    )


def _fail(job: Job, *, code: str, message: str, trace: str = "") -> None:
    logger.info("job %s %s: failed: %s", job.pk, job.kind, code)  # the message may name a file
    _end(job, JobState.FAILED, error_code=code, error_message=message, traceback=trace)


def _end(job: Job, state: JobState, **changes: Any) -> bool:
    return claims.end_job(_leased_row(job), job.pk, state, **changes)


def _leased_row(job: Job) -> Any:
    if job.lease_token is None:
        raise LeaseLost(f"job {job.pk}")
    return claims.leased_job(job.pk, job.lease_token)
