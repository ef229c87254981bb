"""Background work of keeping."""

from __future__ import annotations

from portal.core.errors import ConflictError
from portal.core.tasks import JobContext, JobResult, UserError, task
from portal.keeping.models import Erasure
from portal.keeping.services import erasure_run
from portal.keeping.services.erasing import ERASE_KIND


@task(ERASE_KIND, title="Erase for good", max_attempts=6, retry_on=(OSError, ConflictError))
def erasure_run_task(context: JobContext, *, erasure_id: str) -> JobResult:
    """Erase what a manager ordered; twice changes nothing.

    Outside of ``effect``: the database is rewritten, which no transaction may surround. While a
    job is still at work on what is erased, it is tried again later.
    """
    erasure = Erasure.objects.filter(pk=erasure_id).select_related("lab", "requested_by").first()
    if erasure is None:
        raise UserError("This erasure is not known.", code="gone")
    erasure = erasure_run(erasure)
    if erasure.error_message:
        raise UserError(erasure.error_message, code="erasure-incomplete")
    return {"cases": len(erasure.case_ids)}
