"""Imports that run as jobs: the document is kept until it is imported, or for two days."""

from __future__ import annotations

import csv
import shutil
import uuid
from pathlib import Path
from typing import IO

from django.db import transaction

from ml.types import JsonObject
from portal.annotations.formats import AUTO
from portal.annotations.models import ImportStage, RoiImport
from portal.annotations.rules import require_annotate, require_manage_labels
from portal.annotations.services.exchange import (
    ImportChoices,
    import_author,
    preview_report,
    roi_import_preview,
    roi_import_run,
)
from portal.annotations.services.imports import import_kept
from portal.annotations.services.once import Once
from portal.annotations.services.reading import ImportRun, ImportWork, file_source
from portal.annotations.services.reports import (
    TABLE_HEAD,
    ImportItem,
    ImportReport,
    report_json,
    table_line,
)
from portal.annotations.trail import Trail
from portal.archive.models import Canvas
from portal.core.disk import full_disk_refused, require_room
from portal.core.errors import ConflictError, InvalidInputError, KeyReusedError
from portal.core.storage_layout import Place
from portal.core.tasks import JobContext, JobYielded, Priority
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.labs.models import User

IMPORT_KIND = "rois_import"
_OPEN = (JobState.QUEUED, JobState.RUNNING)
_BEING_READ = (ImportStage.PREVIEWING, ImportStage.IMPORTING)
_COPY_BYTES = 2**20  # at once: few calls, little memory


def roi_import_known(once: Once) -> RoiImport | None:
    """The import that this request brought before; None if there is none.

    Raises:
        KeyReusedError: the key stands for another request.
        ConflictError: it is still being carried out.
    """
    row: RoiImport | None = RoiImport.objects.filter(client_key=once.key).first()
    if row is None:
        return None
    if row.client_digest != once.digest:
        raise KeyReusedError("This Idempotency-Key was used for another request. Choose a new one.")
    if row.report is None and row.job_id is None:
        raise ConflictError(
            "This import is still running.", code="import-running", details={"retry_after_s": 5}
        )
    return row


def roi_import_stage(
    *,
    canvas: Canvas,
    user: User,
    file: IO[bytes],
    choices: ImportChoices,
    is_preview: bool,
    named: str = AUTO,
    document_name: str = "",
    once: Once | None = None,
) -> RoiImport:
    """Keep a document and submit the job that previews or imports it.

    Raises:
        ForbiddenError, FormatError, StorageFullError; InvalidInputError for ``strict``.
    """
    _require(user, canvas.lab_id, choices)
    source = file_source(file, canvas, named=named)
    row = RoiImport(
        lab_id=canvas.lab_id,
        canvas=canvas,
        format=source.format,
        document_name=document_name[:200],
        client_key=once.key if once else "",
        client_digest=once.digest if once else "",
    )
    folder = import_folder(row)
    require_room()
    try:
        with full_disk_refused():
            folder.mkdir(parents=True)
            file.seek(0)
            with (folder / "document").open("wb") as kept:
                shutil.copyfileobj(file, kept, _COPY_BYTES)
        with transaction.atomic():
            _submit(row, user, choices, is_preview=is_preview)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return row


def roi_import_start(
    *, row: RoiImport, user: User, choices: ImportChoices, is_preview: bool
) -> RoiImport:
    """Preview a kept document once more, with other choices, or import it.

    Raises:
        ConflictError: a job of it has not ended, it was imported, or it is no longer kept.
        ForbiddenError.
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
    """What the job does: go through the document from where it was left.

    Returns:
        How many features ended how.
    Raises:
        ConflictError: this job was tried again after another one had read the document to its end,
            or while its ROIs are taken back; or the document is no longer kept.
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
        Trail(folder / "trail", row.done) as trail,
    ):
        source = file_source(file, row.canvas, named=row.format)
        if is_preview:
            report = roi_import_preview(
                canvas=row.canvas,
                user=import_author(row),
                document=source,
                choices=choices,
                work=_preview_work(row, context, table, trail),
                kept=row.report,
            )
        else:
            work = _import_work(row, context, table, trail)
            report = roi_import_run(row=row, source=source, choices=choices, work=work)
        kept = _kept_json(report)
        with context.effect():
            RoiImport.objects.filter(pk=row.pk).update(
                stage=ImportStage.PREVIEWED if is_preview else ImportStage.IMPORTED,
                report=kept,
                done=report.total,
                table_bytes=table.flush(),
            )
    if not is_preview:
        for name in ("document", "trail", "survey.json"):
            (folder / name).unlink(missing_ok=True)
    return dict(report.counts)


def _kept_json(report: ImportReport) -> JsonObject:
    return report_json(report) | {"outlines": list(report.outlines)}


def _preview_work(row: RoiImport, context: JobContext, table: _Table, trail: Trail) -> ImportWork:
    """A preview records how far it came only when it gives way: killed, it begins again."""

    def progress(run: ImportRun) -> None:
        context.progress(run.read, run.tally.total, "previewing")
        try:
            context.give_way()
        except JobYielded:
            with context.part():
                RoiImport.objects.filter(pk=row.pk).update(
                    done=run.read, report=_kept_json(preview_report(run)), table_bytes=table.flush()
                )
            raise

    return ImportWork(
        progress=progress,
        counted=lambda count: context.progress(count, 0, "counting"),
        done=row.done,
        told=table.add,
        trail=trail,
        survey=import_folder(row) / "survey.json",
    )


def _import_work(row: RoiImport, context: JobContext, table: _Table, trail: Trail) -> ImportWork:
    def kept(run: ImportRun) -> None:
        report = run.tally.report(run.classes.all, import_id=row.pk)
        import_kept(row, done=run.read, report=report_json(report), table_bytes=table.flush())

    def progress(run: ImportRun) -> None:
        context.progress(run.read, run.tally.total, "importing")
        context.give_way()

    return ImportWork(
        part=context.part,
        kept=kept,
        progress=progress,
        counted=lambda count: context.progress(count, 0, "counting"),
        done=row.done,
        told=table.add,
        trail=trail,
        survey=import_folder(row) / "survey.json",
    )


class _Table:
    """One line for each feature; what was written after the last committed part is cut off."""

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
