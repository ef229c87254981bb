"""Background tasks of erasure."""

from __future__ import annotations

from portal.core.errors import ConflictError
from portal.core.tasks import JobContext, JobResult, UserError, job_task
from portal.erasure.models import Erasure
from portal.erasure.services.erasures import erasure_run
from portal.erasure.services.requests import ERASE_KIND


@job_task(ERASE_KIND, title="Erase for good", max_attempts=6, retry_on=(OSError, ConflictError))
def erasure_run_task(context: JobContext, *, erasure_id: str) -> JobResult:
    """Run an erasure. Running it twice changes nothing.

    It does not use ``effect``, as the database cannot be rewritten in a transaction. It is retried
    while another job works on the cases.
    """
    erasure = Erasure.objects.filter(pk=erasure_id).select_related("lab", "requested_by").first()
    if erasure is None:
        raise UserError("This erasure is not known.", code="gone")
    erasure = erasure_run(erasure)
    if erasure.error_message:
        raise UserError(erasure.error_message, code="erasure-incomplete")
    return {"cases": len(erasure.case_ids)}
