"""Background work of annotations."""

from __future__ import annotations

import uuid

from portal.annotations.models import RoiImport
from portal.annotations.services.staged import IMPORT_KIND, import_work
from portal.archive.models import Canvas
from portal.core.errors import PortalError, StorageFullError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, task


@task(IMPORT_KIND, title="Import regions", priority=Priority.INGEST, retry_on=(OSError,))
def rois_import(context: JobContext, *, import_id: str) -> JobResult:
    """Preview or import a document part by part; killed in between, the next attempt goes on."""
    rows = RoiImport.objects.select_related("canvas__lab", "author")
    row = rows.filter(pk=uuid.UUID(import_id)).first()
    if row is None or not Canvas.objects.filter(pk=row.canvas_id).exists():
        return {"skipped": "deleted"}
    try:
        return dict(import_work(row, context))
    except StorageFullError:
        raise
    except PortalError as error:
        raise UserError(error.message, code=error.code) from error
