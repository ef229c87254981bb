"""Background work: whole cases exported and imported."""

from __future__ import annotations

import uuid

from portal.archive.models import Upload
from portal.core.errors import PortalError, StorageFullError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, job_task
from portal.interop.rocrate.selectors.exports import EXPORT_KIND, MANY_KIND
from portal.interop.rocrate.selectors.imports import IMPORT_KIND
from portal.interop.rocrate.services.exports import case_export_write, cases_export_write
from portal.interop.rocrate.services.imports.jobs import case_import_work
from portal.jobs.models import Job
from portal.labs.models import User


@job_task(IMPORT_KIND, title="Import case", priority=Priority.INGEST, retry_on=(OSError,))
def case_import(context: JobContext, *, upload_id: str, user_id: str) -> JobResult:
    """Bring in the case of a crate; if killed, the next attempt resumes."""
    user = User.objects.filter(pk=uuid.UUID(user_id), is_active=True).first()
    upload = Upload.objects.select_related("lab").filter(pk=uuid.UUID(upload_id)).first()
    if user is None or upload is None:
        reason = "crate was deleted" if user else "account that asked for this import is gone"
        raise UserError(f"The {reason}.", code="gone")
    try:
        return case_import_work(user=user, upload=upload, context=context)
    except PortalError as error:
        if isinstance(error, OSError):
            raise  # the store is unavailable; the job is retried
        raise UserError(error.message, code=error.code) from error


@job_task(
    EXPORT_KIND, title="Export case", priority=Priority.BULK, retry_on=(OSError, StorageFullError)
)
def case_export(context: JobContext, *, case_id: str, user_id: str) -> JobResult:
    """Write what a manager ordered; if killed, the next attempt starts again."""
    user = User.objects.filter(pk=uuid.UUID(user_id), is_active=True).first()
    if user is None:
        raise UserError("The account that ordered this export no longer exists.", code="gone")
    try:
        return case_export_write(user=user, case_id=uuid.UUID(case_id), context=context)
    except StorageFullError:
        raise
    except PortalError as error:
        raise UserError(error.message, code=error.code) from error


@job_task(
    MANY_KIND, title="Export cases", priority=Priority.BULK, retry_on=(OSError, StorageFullError)
)
def cases_export(context: JobContext, *, case_ids: list[str], user_id: str) -> JobResult:
    """Write the exports of many cases; if killed, the next attempt does the rest."""
    user = User.objects.filter(pk=uuid.UUID(user_id), is_active=True).first()
    if user is None:
        raise UserError("The account that ordered this export no longer exists.", code="gone")
    since = Job.objects.get(pk=context.job_id).created_at
    ids = [uuid.UUID(case_id) for case_id in case_ids]
    return cases_export_write(user=user, case_ids=ids, since=since, context=context)
