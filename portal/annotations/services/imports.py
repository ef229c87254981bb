"""An import taken back, as the one step it was."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from portal.annotations.models import Roi, RoiAction, RoiImport, RoiRevision
from portal.annotations.rules import require_annotate
from portal.annotations.services.rois import roi_delete, roi_update
from portal.labs.models import User

CHUNK = 25  # as an import: others save in between


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

    An ROI that was changed after the import is left as it is. A second time finds nothing to do.
    """
    require_annotate(user, roi_import.lab_id)
    if roi_import.undone_at is not None:
        return ImportUndone(0, 0, 0)
    revisions = roi_import.revisions.order_by("version").defer("geometry")
    first: dict[uuid.UUID, RoiRevision] = {}
    last: dict[uuid.UUID, int] = {}
    for revision in revisions:
        first.setdefault(revision.roi_id, revision)
        last[revision.roi_id] = revision.version
    ids = list(first)
    count = {"removed": 0, "reverted": 0, "kept": 0}
    for start in range(0, len(ids), CHUNK):
        with transaction.atomic():
            chunk = Roi.objects.select_for_update().filter(pk__in=ids[start : start + CHUNK])
            for roi in chunk.select_related("canvas"):
                is_as_imported = roi.version == last[roi.pk]
                count[_take_back(roi, first[roi.pk], user) if is_as_imported else "kept"] += 1
    RoiImport.objects.filter(pk=roi_import.pk).update(undone_at=timezone.now())
    return ImportUndone(**count)


def _take_back(roi: Roi, first: RoiRevision, user: User) -> str:
    if first.action != RoiAction.CREATE:
        before = RoiRevision.objects.select_related("label").get(roi=roi, version=first.version - 1)
        roi_update(
            roi=roi,
            user=user,
            expected_version=roi.version,
            changes={
                "geometry": before.geometry,
                "name": before.name,
                "label": before.label,
                "shape": before.shape,
                "is_locked": before.is_locked,
            },
        )
    if first.action == RoiAction.UPDATE:
        return "reverted"
    roi_delete(roi=roi, user=user, expected_version=roi.version, despite_lock=True)
    return "removed"
