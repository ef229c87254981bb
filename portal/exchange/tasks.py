"""Background work of standards."""

from __future__ import annotations

import uuid

from portal.core.errors import PortalError, StorageFullError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, task
from portal.exchange.selectors import EXPORT_KIND
from portal.exchange.services import case_export_write
from portal.labs.models import User


@task(
    EXPORT_KIND, title="Export case", priority=Priority.BULK, retry_on=(OSError, StorageFullError)
)
def case_export(context: JobContext, *, case_id: str, user_id: str) -> JobResult:
    """Write what a manager ordered; killed, the next attempt begins anew."""
    user = User.objects.filter(pk=uuid.UUID(user_id), is_active=True).first()
    if user is None:
        raise UserError("Who ordered this export is gone.", code="gone")
    try:
        return case_export_write(user=user, case_id=uuid.UUID(case_id), context=context)
    except StorageFullError:
        raise
    except PortalError as error:
        raise UserError(error.message, code=error.code) from error
