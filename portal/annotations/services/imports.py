"""An import taken back, as the one step it was: by a person, or because its writer is gone."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from portal.annotations.models import ImportStage, Roi, RoiAction, RoiImport, RoiRevision
from portal.annotations.rules import require_annotate
from portal.annotations.services.bulk import Written, rois_save
from portal.annotations.services.fields import RoiChanges, changed_fields
from portal.annotations.services.rois import roi_delete, roi_update
from portal.core.errors import ConflictError, PortalError
from portal.jobs.models import Job, JobState
from portal.labs.models import User

logger = logging.getLogger(__name__)

CHUNK = 100  # as an import: others save in between
SILENT = timedelta(minutes=5)
"""An import within a request writes a part, or says that it lives, every few seconds."""


@dataclass(frozen=True, slots=True)
class ImportUndone:
    """What became of an import's ROIs.

    Attributes:
        removed: deleted again. reverted: as they were before.
        kept: left alone, because somebody changed them since.
    """

    removed: int
    reverted: int
    kept: int


def roi_import_undo(*, roi_import: RoiImport, user: User) -> ImportUndone:
    """Take an import back: delete what it made, revert what it changed. All stays in the history.

    An ROI that was changed after the import is left as it is, and so is one of which the label it
    had before was retired since. A second time finds nothing to do.

    Raises:
        ConflictError: it is still running. ForbiddenError.
    """
    require_annotate(user, roi_import.lab_id)
    if roi_import.undone_at is not None:
        return ImportUndone(0, 0, 0)
    _refuse_running(roi_import)
    return _undo(roi_import, user)


def import_kept(roi_import: RoiImport, **fields: Any) -> None:
    """Say, in the transaction of a part, how far an import came.

    Raises:
        ConflictError: it was taken back meanwhile; the part must not last.
    """
    rows = RoiImport.objects.filter(pk=roi_import.pk, undone_at=None)
    if not rows.update(updated_at=Now(), **fields):
        raise ConflictError("This import was taken back.", code="import-undone")


def imports_lost_undo() -> int:
    """Take back imports within requests whose process is gone: nobody else knows of their half.

    Those that run as jobs go on. A chore: safe at any time and twice. One that cannot be taken back
    now is tried again later. Returns how many were.
    """
    silent = RoiImport.objects.filter(
        stage=ImportStage.IMPORTING, job_id=None, updated_at__lt=Now() - SILENT
    ).exclude(author=None)
    count = 0
    for row in silent.select_related("canvas", "author"):
        rows = silent.filter(pk=row.pk)
        if not rows.update(undone_at=Now()):
            continue  # it was only slow, and has ended meanwhile
        try:
            import_undo_unasked(row)
            count += 1
        except PortalError:
            logger.exception("import %s cannot be taken back", row.pk)
            rows.update(updated_at=Now())
    return count


def import_undo_unasked(roi_import: RoiImport) -> None:
    """Take back an import that broke off; killed in between, the chore does the rest.

    Its key is free again: the request can be sent once more.
    """
    rows = RoiImport.objects.filter(pk=roi_import.pk)
    rows.update(undone_at=Now())  # first: a process that was only paused writes no further part
    if roi_import.author is not None:
        _undo(roi_import, roi_import.author)
    rows.update(stage=ImportStage.IMPORTED, client_key="")


def _refuse_running(roi_import: RoiImport) -> None:
    """What is undone while it is written would be written on."""
    if roi_import.stage != ImportStage.IMPORTING:
        return
    job = Job.objects.filter(pk=roi_import.job_id) if roi_import.job_id else None
    if job is None or job.filter(state__in=(JobState.QUEUED, JobState.RUNNING)).exists():
        raise ConflictError(
            "This import is still running. Stop it first, then undo it.", code="import-running"
        )


def _undo(roi_import: RoiImport, user: User) -> ImportUndone:
    revisions = roi_import.revisions.order_by("version").defer("geometry", "track")
    first: dict[uuid.UUID, RoiRevision] = {}
    last: dict[uuid.UUID, int] = {}
    for revision in revisions.iterator(chunk_size=2_000):
        first.setdefault(revision.roi_id, revision)
        last[revision.roi_id] = revision.version
    ids = list(first)
    count: Counter[str] = Counter()
    for start in range(0, len(ids), CHUNK):
        with transaction.atomic():
            rows = Roi.objects.select_for_update().filter(pk__in=ids[start : start + CHUNK])
            rois = list(rows.order_by("pk"))
            for roi in rois:
                roi.canvas = roi_import.canvas
            as_imported = [roi for roi in rois if roi.version == last[roi.pk]]
            count["kept"] += len(rois) - len(as_imported)
            count += _take_back(roi_import, as_imported, first, user)
    RoiImport.objects.filter(pk=roi_import.pk).update(undone_at=timezone.now())
    return ImportUndone(count["removed"], count["reverted"], count["kept"])


def _take_back(
    roi_import: RoiImport, rois: Sequence[Roi], first: dict[uuid.UUID, RoiRevision], user: User
) -> Counter[str]:
    """What was made or changed by a few statements for all of them."""
    made = [roi for roi in rois if first[roi.pk].action == RoiAction.CREATE]
    changed = [roi for roi in rois if first[roi.pk].action == RoiAction.UPDATE]
    before = _before(changed, first)
    now = timezone.now()
    written = [_written(roi, RoiAction.DELETE, {"deleted_at": now}, now) for roi in made]
    count = Counter(removed=len(made))
    for roi in changed:
        with _counted(count, "reverted"):
            if fields := changed_fields(roi, before[roi.pk])[0]:
                written.append(_written(roi, RoiAction.UPDATE, fields, now))
    rois_save(roi_import.canvas, user, [], written)
    for roi in rois:
        if first[roi.pk].action == RoiAction.RESTORE:  # two steps each, and rare
            with _counted(count, "removed"), transaction.atomic():
                changes = _before([roi], first)[roi.pk]
                roi_update(roi=roi, user=user, expected_version=roi.version, changes=changes)
                roi_delete(roi=roi, user=user, expected_version=roi.version, despite_lock=True)
    return count


@contextmanager
def _counted(count: Counter[str], word: str) -> Iterator[None]:
    """An ROI under the word; as kept where it cannot be as it was."""
    try:
        yield
        count[word] += 1
    except PortalError:
        count["kept"] += 1


def _before(
    rois: Sequence[Roi], first: dict[uuid.UUID, RoiRevision]
) -> dict[uuid.UUID, RoiChanges]:
    """What makes each as it was before the import."""
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


def _written(roi: Roi, action: RoiAction, fields: dict[str, object], now: datetime) -> Written:
    for name, value in fields.items():
        setattr(roi, name, value)
    roi.version += 1
    roi.updated_at = now
    return Written(roi, action, fields)
