"""Runs one claimed job and writes down how it ended."""

from __future__ import annotations

import logging
import os
import socket
import traceback
import uuid
from collections.abc import Mapping
from typing import Any

from ml.errors import BadInputError, CancelledError, MlError
from portal.core.connections import connection_refresh
from portal.core.tasks import REGISTRY, JobCancelled, LeaseLost, TaskSpec, UserError
from portal.jobs import ledger
from portal.jobs.models import Job, JobState
from portal.jobs.worker.context import LedgerContext

logger = logging.getLogger(__name__)

INTERNAL_ERROR = "Something went wrong inside Tessera. The details were kept under this job's id."


def worker_name() -> str:
    """Host and process: enough to find a log line."""
    return f"{socket.gethostname()}:{os.getpid()}"


def job_run(job_id: uuid.UUID) -> bool:
    """Claim and run the job; False where there was nothing to claim."""
    connection_refresh()
    job = ledger.claim(job_id, worker=worker_name())
    if job is None:
        return False
    spec = REGISTRY.get(job.kind)
    if spec is None:
        _fail(job, code="unknown-kind", message=f"No worker knows jobs of kind {job.kind!r}.")
        return True
    logger.info("job %s %s: attempt %d begins", job.pk, job.kind, job.attempts)
    _attempt(job, spec)
    return True


def _attempt(job: Job, spec: TaskSpec) -> None:
    """Run once; control flow by type: lost, cancelled, tell the user, retry, bug."""
    try:
        with LedgerContext(job) as context:
            result = spec.function(context, **job.args)
        _succeed(job, context, result)
    except LeaseLost:
        logger.warning("job %s: lease lost, another worker has it", job.pk)
    except (JobCancelled, CancelledError):
        _end(job, JobState.CANCELLED, error_code="cancelled", error_message="Cancelled.")
    except UserError as error:
        _fail(job, code=error.code, message=error.message)
    except BadInputError as error:
        _fail(job, code=error.code, message=str(error))
    except spec.retry_on as error:
        _retry_or_fail(job, spec, error)
    except MlError as error:
        _fail(job, code=error.code, message=str(error))
    except Exception:
        logger.exception("job %s %s: bug", job.pk, job.kind)
        _fail(job, code="internal", message=INTERNAL_ERROR, trace=traceback.format_exc())


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
        message = f"Gave up after {job.attempts} attempts. {INTERNAL_ERROR}"
        _fail(job, code="attempts-spent", message=message, trace=traceback.format_exc())
        return
    delay_s = spec.backoff_s * 2 ** (job.attempts - 1)
    logger.warning("job %s %s: %s; again in %.0f s", job.pk, job.kind, error, delay_s)
    ledger.requeue(
        _held(job), delay_s=delay_s, message=f"Attempt {job.attempts} failed; trying again."
    )


def _fail(job: Job, *, code: str, message: str, trace: str = "") -> None:
    logger.info("job %s %s: failed: %s", job.pk, job.kind, message)
    _end(job, JobState.FAILED, error_code=code, error_message=message, traceback=trace)


def _end(job: Job, state: JobState, **changes: Any) -> bool:
    return ledger.end(_held(job), job.pk, state, **changes)


def _held(job: Job) -> Any:
    if job.lease_token is None:
        raise LeaseLost(f"job {job.pk}")
    return ledger.held(job.pk, job.lease_token)
