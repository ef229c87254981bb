"""An import taken back, as the one step it was."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from portal.annotations.models import Roi, RoiAction, RoiImport, RoiRevision
from portal.annotations.rules import require_annotate
from portal.annotations.services.bulk import Written, rois_save
from portal.annotations.services.fields import RoiChanges, changed_fields
from portal.annotations.services.rois import roi_delete, roi_update
from portal.labs.models import User

CHUNK = 100  # as an import: others save in between


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
    for roi in changed:
        if fields := changed_fields(roi, before[roi.pk])[0]:
            written.append(_written(roi, RoiAction.UPDATE, fields, now))
    rois_save(roi_import.canvas, user, [], written)
    restored = [roi for roi in rois if first[roi.pk].action == RoiAction.RESTORE]
    for roi in restored:  # two steps each, and rare
        changes = _before([roi], first)[roi.pk]
        roi_update(roi=roi, user=user, expected_version=roi.version, changes=changes)
        roi_delete(roi=roi, user=user, expected_version=roi.version, despite_lock=True)
    return Counter(removed=len(made) + len(restored), reverted=len(changed))


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
