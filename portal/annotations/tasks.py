"""Background work of annotations."""

from __future__ import annotations

import uuid
from dataclasses import asdict

from portal.annotations.models import RoiImport
from portal.annotations.services.imports import UNDO_KIND, import_undo_work
from portal.annotations.services.staged import IMPORT_KIND, import_work
from portal.archive.models import Canvas
from portal.core.errors import PortalError, StorageFullError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, job_task
from portal.labs.models import User


@job_task(IMPORT_KIND, title="Import regions", priority=Priority.INGEST, retry_on=(OSError,))
def rois_import(context: JobContext, *, import_id: str) -> JobResult:
    """Preview or import a document part by part; killed in between, the next attempt continues."""
    row = _row(import_id)
    if row is None:
        return {"skipped": "deleted"}
    try:
        return dict(import_work(row, context))
    except StorageFullError:
        raise
    except PortalError as error:
        raise UserError(error.message, code=error.code) from error


@job_task(UNDO_KIND, title="Undo an import", priority=Priority.INGEST, retry_on=(OSError,))
def rois_import_undo(context: JobContext, *, import_id: str, user_id: str) -> JobResult:
    """Take a large import back part by part; killed or stopped, the next time continues."""
    row = _row(import_id)
    if row is None:
        return {"skipped": "deleted"}
    user = User.objects.filter(pk=uuid.UUID(user_id)).first()
    try:
        return dict(asdict(import_undo_work(row, user, context)))
    except PortalError as error:
        raise UserError(error.message, code=error.code) from error


def _row(import_id: str) -> RoiImport | None:
    rows = RoiImport.objects.select_related("canvas__lab", "author")
    row: RoiImport | None = rows.filter(pk=uuid.UUID(import_id)).first()
    is_there = row is not None and Canvas.objects.filter(pk=row.canvas_id).exists()
    return row if is_there else None
