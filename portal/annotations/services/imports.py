"""Undo an import as one step: for a user, or because its worker died.

Works part by part, in the order of ids of ROIs and events. The row stores its progress in the
transaction of each part, so a resumed undo reverts and counts nothing twice.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from portal.annotations.models import ImportStage, Roi, RoiAction, RoiImport, RoiRevision
from portal.annotations.rules import require_annotate
from portal.annotations.services.bulk import Written, rois_save
from portal.annotations.services.fields import RoiChanges, RoiColumns, changed_fields
from portal.annotations.services.video_events import video_events_import_undo
from portal.core.errors import ConflictError, PortalError
from portal.core.tasks import JobContext
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.labs.models import User

logger = logging.getLogger(__name__)

UNDO_KIND = "rois_import_undo"
CHUNK = 100  # as for an import, so that others can save in between
AT_ONCE = 1_000
"""ROIs taken back within a request, or a pass of the chore: a second. More are a job's work. As
many events besides."""
SILENT = timedelta(minutes=5)
"""An import within a request writes a part, or shows that it is alive, every few seconds."""
_OPEN = (JobState.QUEUED, JobState.RUNNING)
_ONLY_LOOKED_AT = (ImportStage.PREVIEWING, ImportStage.PREVIEWED)


@dataclass(frozen=True, slots=True)
class ImportUndone:
    """Number of ROIs and events per result of an undone import.

    Attributes:
        removed: Deleted again.
        reverted: Changed back to the state before the import.
        skipped: Left unchanged because somebody edited them since.
    """

    removed: int = 0
    reverted: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class UndoWork:
    """Execution options of an undo.

    Attributes:
        part: Transaction of a part.
        progress: Called with the number of ROIs processed and their total.
        max_rois: Maximum number of ROIs; the rest is left for the next run.
    """

    part: Callable[[], AbstractContextManager[None]] = transaction.atomic
    progress: Callable[[int, int], None] | None = None
    max_rois: int | None = None


def roi_import_undo(*, roi_import: RoiImport, user: User) -> ImportUndone:
    """Undo an import: delete its new rows and revert its changes. The history keeps all of them.

    An ROI that was changed after the import is left as it is, and so is one whose label from before
    the import was retired since. A second time finds nothing to do.

    Raises:
        ConflictError: it is still running, or being taken back by a job. ForbiddenError.
    """
    require_annotate(user, roi_import.lab_id)
    if roi_import.undone_at is not None or roi_import.stage in _ONLY_LOOKED_AT:
        return ImportUndone()
    _refuse_running(roi_import)
    if roi_import.stage == ImportStage.UNDOING and _is_open(roi_import):
        raise ConflictError("This import is already being undone.", code="import-undoing")
    rows = RoiImport.objects.filter(pk=roi_import.pk)
    # First, so that a retry of the import's job writes nothing more.
    rows.update(stage=ImportStage.UNDOING)
    undone, _ = _undo(roi_import, user, UndoWork())
    rows.update(undone_at=timezone.now(), stage=ImportStage.IMPORTED)
    return undone


def roi_import_undo_start(*, roi_import: RoiImport, user: User) -> ImportUndone | None:
    """Take an import back at once or, where it is a large one, by a job: None then.

    The row's ``stage`` and ``job_id`` are those of the job. One that is under way is not begun a
    second time; one that was stopped continues.

    Raises:
        As ``roi_import_undo``.
    """
    require_annotate(user, roi_import.lab_id)
    with transaction.atomic():
        row = RoiImport.objects.select_for_update().get(pk=roi_import.pk)
        if row.undone_at is None:
            _refuse_running(row)
            if row.stage == ImportStage.UNDOING and _is_open(row):
                roi_import.stage, roi_import.job_id = row.stage, row.job_id
                return None
            if _is_large(row):
                job = job_submit(
                    kind=UNDO_KIND,
                    args={"import_id": str(row.pk), "user_id": str(user.pk)},
                    lab=row.canvas.lab,
                    user=user,
                    target=row.canvas,
                )
                roi_import.stage, roi_import.job_id = ImportStage.UNDOING, job.pk
                roi_import.save(update_fields=["stage", "job_id", "updated_at"])
                return None
    return roi_import_undo(roi_import=roi_import, user=user)


def import_undo_work(row: RoiImport, user: User | None, context: JobContext) -> ImportUndone:
    """Run the job: resume the undo.

    Args:
        user: Requesting user; None if the account no longer exists, the undo finishes regardless.
    """

    def progress(done: int, total: int) -> None:
        context.progress(done, total, "undoing")
        context.give_way()

    undone, _ = _undo(row, user, UndoWork(part=context.part, progress=progress))
    with context.effect():
        RoiImport.objects.filter(pk=row.pk).update(
            undone_at=timezone.now(), stage=ImportStage.IMPORTED
        )
    return undone


def import_fields_update(roi_import: RoiImport, **fields: Any) -> None:
    """Update fields of a running import, in the transaction that stores a part.

    Raises:
        ConflictError: it was undone or is being undone; the part must be rolled back.
    """
    rows = RoiImport.objects.filter(pk=roi_import.pk, undone_at=None)
    if not rows.exclude(stage=ImportStage.UNDOING).update(updated_at=Now(), **fields):
        raise ConflictError("This import was undone.", code="import-undone")


def imports_lost_undo() -> int:
    """Undo imports within requests whose process has ended before they were complete.

    Those that run as jobs continue. A chore: safe at any time and twice, and short: the rest of a
    large one is left for the next time, and one that cannot be taken back now is tried again
    later. Returns how many were taken back completely.
    """
    silent = RoiImport.objects.filter(
        stage=ImportStage.IMPORTING, job=None, updated_at__lt=Now() - SILENT
    )
    count = 0
    for row in silent.select_related("canvas", "author"):
        rows = silent.filter(pk=row.pk)
        if not rows.update(undone_at=Now()):
            continue  # it has finished in the meantime
        try:
            count += import_undo_unasked(row, max_rois=AT_ONCE)
        except PortalError:
            logger.exception("import %s cannot be taken back", row.pk)
            rows.update(updated_at=Now())
    return count


def import_undo_unasked(roi_import: RoiImport, *, max_rois: int | None = None) -> bool:
    """Undo an interrupted import; if this is interrupted too, the chore completes it.

    Recorded for its author, or for no user if that account no longer exists.

    Args:
        max_rois: Maximum number of ROIs. Returns whether none is left.
    """
    rows = RoiImport.objects.filter(pk=roi_import.pk)
    rows.update(undone_at=Now())  # first, so that a paused process writes nothing more
    _, is_all = _undo(roi_import, roi_import.author, UndoWork(max_rois=max_rois))
    if is_all:
        rows.update(stage=ImportStage.IMPORTED)
    return is_all


def _refuse_running(roi_import: RoiImport) -> None:
    """Raise ``ConflictError`` for a running import, which would go on writing."""
    if roi_import.stage != ImportStage.IMPORTING:
        return
    if roi_import.job_id is None or _is_open(roi_import):
        raise ConflictError(
            "This import is still running. Stop it first, then undo it.", code="import-running"
        )


def _is_large(row: RoiImport) -> bool:
    """Return whether undoing it is a job's work."""
    revisions = (row.revisions, row.event_revisions)
    return any(rows.order_by()[AT_ONCE : AT_ONCE + 1].exists() for rows in revisions)


def _is_open(roi_import: RoiImport) -> bool:
    """Return whether its job waits or runs."""
    job_id = roi_import.job_id
    return job_id is not None and Job.objects.filter(pk=job_id, state__in=_OPEN).exists()


def _undo(row: RoiImport, user: User | None, work: UndoWork) -> tuple[ImportUndone, bool]:
    """Results so far, including earlier runs, and whether the undo is complete."""
    row.refresh_from_db(fields=["undone", "undo_after"])
    of_rois = row.revisions.order_by().values_list("roi_id", flat=True)
    of_events = row.event_revisions.order_by().values_list("event_id", flat=True)
    if row.undo_after:
        of_rois = of_rois.filter(roi_id__gt=row.undo_after)
        of_events = of_events.filter(event_id__gt=row.undo_after)
    ids = sorted({*of_rois, *of_events})
    before = sum((row.undone or {}).values())
    now = ids[: work.max_rois]
    for start in range(0, len(now), CHUNK):
        part = now[start : start + CHUNK]
        with work.part():
            count = Counter(row.undone) + _part_undone(row, part, user)
            count += video_events_import_undo(roi_import=row, ids=part, user=user)
            _keep_undone(row, count, part[-1])
        if work.progress:
            work.progress(before + start + len(part), before + len(ids))
    return ImportUndone(**(row.undone or {})), len(now) == len(ids)


def _keep_undone(row: RoiImport, count: Counter[str], after: uuid.UUID) -> None:
    """Save the state of an undoing in the transaction of a part; detect a concurrent one."""
    undone = asdict(ImportUndone(**count))
    rows = RoiImport.objects.filter(pk=row.pk, undo_after=row.undo_after)
    if not rows.update(undone=undone, undo_after=after):
        raise ConflictError("This import is already being undone.", code="import-undoing")
    row.undone, row.undo_after = undone, after


def _part_undone(row: RoiImport, ids: Sequence[uuid.UUID], user: User | None) -> Counter[str]:
    """Undo the import for some ROIs, by a constant number of statements."""
    first: dict[uuid.UUID, RoiRevision] = {}
    last: dict[uuid.UUID, int] = {}
    revisions = row.revisions.filter(roi__in=ids).order_by("version")
    for revision in revisions.defer("geometry", "track"):
        first.setdefault(revision.roi_id, revision)
        last[revision.roi_id] = revision.version
    rois = list(Roi.objects.select_for_update().filter(pk__in=ids).order_by("pk"))
    for roi in rois:
        roi.canvas = row.canvas
    as_imported = [roi for roi in rois if roi.version == last[roi.pk]]
    count = Counter(skipped=len(rois) - len(as_imported))
    before = _changes_to_revert(
        [roi for roi in as_imported if first[roi.pk].action != RoiAction.CREATE], first
    )
    now, written = timezone.now(), list[Written]()
    for roi in as_imported:
        action = first[roi.pk].action
        deletion: RoiColumns = {} if action == RoiAction.UPDATE else {"deleted_at": now}
        try:
            fields = changed_fields(roi, before.get(roi.pk, {}))[0]
        except PortalError:
            count["skipped"] += 1  # the earlier state is no longer valid
            continue
        count["removed" if deletion else "reverted"] += 1
        if fields or deletion:
            roi_action = RoiAction.DELETE if deletion else RoiAction.UPDATE
            written.append(_roi_write(roi, roi_action, fields | deletion, now))
    rois_save(row.canvas, user, [], written)
    return count


def _changes_to_revert(
    rois: Sequence[Roi], first: dict[uuid.UUID, RoiRevision]
) -> dict[uuid.UUID, RoiChanges]:
    """Changes that restore each ROI to its state before the import."""
    versions = {roi.pk: first[roi.pk].version - 1 for roi in rois}
    rows = RoiRevision.objects.select_related("label").filter(
        roi__in=versions, version__in=set(versions.values())
    )
    return {
        was.roi_id: {
            "geometry": was.geometry,
            "name": was.name,
            "description": was.description,
            "properties": was.properties,
            "label": was.label,
            "shape": was.shape,
            "track": was.track,
            "is_locked": was.is_locked,
        }
        for was in rows
        if was.version == versions[was.roi_id]
    }


def _roi_write(roi: Roi, action: RoiAction, fields: RoiColumns, now: datetime) -> Written:
    for name, value in fields.items():
        setattr(roi, name, value)
    roi.version += 1
    roi.updated_at = now
    return Written(roi, action, fields)
