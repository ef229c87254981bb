"""Imports that run as jobs: the document is stored until it is imported, or for two days."""

from __future__ import annotations

import csv
import shutil
import uuid
from pathlib import Path
from typing import IO

from django.db import transaction

from ml.types import JsonObject
from portal.annotations.formats.registry import AUTO
from portal.annotations.import_progress import ImportProgress
from portal.annotations.models import ImportStage, RoiImport
from portal.annotations.rules import require_annotate, require_manage_labels
from portal.annotations.services.exchange import (
    ImportChoices,
    import_author,
    preview_report,
    roi_import_preview,
    roi_import_run,
)
from portal.annotations.services.imports import import_fields_update
from portal.annotations.services.reading import ImportRun, ImportWork, file_source
from portal.annotations.services.reports import (
    TABLE_HEAD,
    ImportItem,
    ImportReport,
    report_json,
    table_line,
)
from portal.archive.models import Canvas
from portal.core.disk import full_disk_refused, require_room
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.storage_layout import Place
from portal.core.tasks import JobContext, JobYielded, Priority
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.labs.models import User

IMPORT_KIND = "rois_import"
_OPEN = (JobState.QUEUED, JobState.RUNNING)
_BEING_READ = (ImportStage.PREVIEWING, ImportStage.IMPORTING)
_COPY_BYTES = 2**20  # at once: few calls, little memory


def roi_import_stage(
    *,
    canvas: Canvas,
    user: User,
    file: IO[bytes],
    choices: ImportChoices,
    is_preview: bool,
    format_name: str = AUTO,
    document_name: str = "",
) -> RoiImport:
    """Keep a document and submit the job that previews or imports it.

    Raises:
        ForbiddenError, FormatError, StorageFullError; InvalidInputError for ``strict``.
    """
    _require(user, canvas.lab_id, choices)
    source = file_source(file, canvas, format_name=format_name)
    row = RoiImport(
        lab_id=canvas.lab_id,
        canvas=canvas,
        format=source.format,
        document_name=document_name[:200],
    )
    folder = import_folder(row)
    require_room()
    try:
        with full_disk_refused():
            folder.mkdir(parents=True)
            file.seek(0)
            with (folder / "document").open("wb") as copy:
                shutil.copyfileobj(file, copy, _COPY_BYTES)
        with transaction.atomic():
            _submit(row, user, choices, is_preview=is_preview)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return row


def roi_import_start(
    *, row: RoiImport, user: User, choices: ImportChoices, is_preview: bool
) -> RoiImport:
    """Preview a stored document again, with other choices, or import it.

    Raises:
        ConflictError: its job has not ended, it was imported, or it is no longer stored.
        ForbiddenError: not an annotator, or no rights to create labels.
    """
    _require(user, row.lab_id, choices)
    with transaction.atomic():
        row = RoiImport.objects.select_for_update().get(pk=row.pk)
        if row.job_id and Job.objects.filter(pk=row.job_id, state__in=_OPEN).exists():
            raise ConflictError("This document is already being read.", code="import-running")
        if row.undone_at or row.stage not in {ImportStage.PREVIEWING, ImportStage.PREVIEWED}:
            raise ConflictError("This document has already been imported.", code="imported")
        if not (import_folder(row) / "document").exists():
            raise ConflictError("This document is no longer kept. Send it again.", code="gone")
        _submit(row, user, choices, is_preview=is_preview)
    return row


def _require(user: User, lab_id: uuid.UUID, choices: ImportChoices) -> None:
    require_annotate(user, lab_id)
    if choices.create_labels:
        require_manage_labels(user, lab_id)
    if choices.strict:
        raise InvalidInputError(
            "strict: not available for an import that runs as a job; preview it instead."
        )


def _submit(row: RoiImport, user: User, choices: ImportChoices, *, is_preview: bool) -> None:
    row.author = user
    row.stage = ImportStage.PREVIEWING if is_preview else ImportStage.IMPORTING
    row.choices = {
        "create_labels": choices.create_labels,
        "labels": {name: pk and str(pk) for name, pk in choices.labels.items()},
    }
    row.done, row.report, row.table_bytes = 0, None, 0
    job = job_submit(
        kind=IMPORT_KIND,
        args={"import_id": str(row.pk)},
        lab=row.canvas.lab,
        user=user,
        target=row.canvas,
        priority=Priority.INTERACTIVE if is_preview else Priority.INGEST,
    )
    row.job_id = job.pk
    row.save()


def import_folder(row: RoiImport) -> Path:
    """Folder of a document and of the table of what became of it; swept with scratch."""
    return Place.ROI_IMPORTS.path(row.canvas_id, row.pk)


def import_work(row: RoiImport, context: JobContext) -> dict[str, int]:
    """Run the job: process the document from where the last run stopped.

    Returns:
        Number of features per result.
    Raises:
        ConflictError: this job was retried after another one had read the document to its end,
            or while its ROIs are being undone; or the document was removed.
    """
    if row.stage not in _BEING_READ:
        raise ConflictError(
            "This document is no longer being read. Look at the state of its import.",
            code="import-ended",
        )
    chosen = {name: pk and uuid.UUID(pk) for name, pk in row.choices["labels"].items()}
    choices = ImportChoices(row.choices["create_labels"], chosen)
    folder = import_folder(row)
    try:
        file = (folder / "document").open("rb")
    except FileNotFoundError:
        raise ConflictError(
            "This document is no longer kept. Send it again.", code="gone"
        ) from None
    is_preview = row.stage == ImportStage.PREVIEWING
    with (
        file,
        _Table(folder / "report.csv", row.table_bytes) as table,
        ImportProgress(folder / "import_progress", row.done) as import_progress,
    ):
        source = file_source(file, row.canvas, format_name=row.format)
        if is_preview:
            report = roi_import_preview(
                canvas=row.canvas,
                user=import_author(row),
                document=source,
                choices=choices,
                work=_preview_work(row, context, table, import_progress),
                stored_report=row.report,
            )
        else:
            work = _import_work(row, context, table, import_progress)
            report = roi_import_run(row=row, source=source, choices=choices, work=work)
        stored_report = _stored_report(report)
        with context.effect():
            RoiImport.objects.filter(pk=row.pk).update(
                stage=ImportStage.PREVIEWED if is_preview else ImportStage.IMPORTED,
                report=stored_report,
                done=report.total,
                table_bytes=table.flush(),
            )
    if not is_preview:
        for name in ("document", "import_progress", "survey.json"):
            (folder / name).unlink(missing_ok=True)
    return dict(report.counts)


def _stored_report(report: ImportReport) -> JsonObject:
    return report_json(report) | {"outlines": list(report.outlines)}


def _preview_work(
    row: RoiImport, context: JobContext, table: _Table, import_progress: ImportProgress
) -> ImportWork:
    """A preview stores its progress only when it yields; after a crash it starts again."""

    def progress(run: ImportRun) -> None:
        context.progress(run.read, run.tally.total, "previewing")
        try:
            context.give_way()
        except JobYielded:
            with context.part():
                RoiImport.objects.filter(pk=row.pk).update(
                    done=run.read,
                    report=_stored_report(preview_report(run)),
                    table_bytes=table.flush(),
                )
            raise

    return ImportWork(
        progress=progress,
        counted=lambda count: context.progress(count, 0, "counting"),
        done=row.done,
        on_item=table.add,
        import_progress=import_progress,
        survey=import_folder(row) / "survey.json",
    )


def _import_work(
    row: RoiImport, context: JobContext, table: _Table, import_progress: ImportProgress
) -> ImportWork:
    def on_stored(run: ImportRun) -> None:
        report = run.tally.report(run.classes.all, import_id=row.pk)
        import_fields_update(
            row, done=run.read, report=report_json(report), table_bytes=table.flush()
        )

    def progress(run: ImportRun) -> None:
        context.progress(run.read, run.tally.total, "importing")
        context.give_way()

    return ImportWork(
        part=context.part,
        on_stored=on_stored,
        progress=progress,
        counted=lambda count: context.progress(count, 0, "counting"),
        done=row.done,
        on_item=table.add,
        import_progress=import_progress,
        survey=import_folder(row) / "survey.json",
    )


class _Table:
    """Table with a line per feature; lines after the last committed part are cut off."""

    def __init__(self, path: Path, length_bytes: int) -> None:
        self._file = path.open("a", newline="", encoding="utf-8")
        self._file.truncate(length_bytes)
        self._writer = csv.writer(self._file)
        if not length_bytes:
            self._writer.writerow(TABLE_HEAD)

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, item: ImportItem) -> None:
        self._writer.writerow(table_line(item))

    def flush(self) -> int:
        self._file.flush()
        return self._file.tell()
