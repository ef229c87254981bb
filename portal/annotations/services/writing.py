"""How an ROI is written: under its version, with a revision and an event."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from django.utils import timezone

from portal.annotations.models import Label, Roi, RoiAction, RoiImport, RoiRevision
from portal.annotations.selectors.labels import label_version_now
from portal.annotations.services.fields import RoiColumns
from portal.annotations.services.once import Once
from portal.core.errors import NotFoundError, StaleVersionError
from portal.core.events import event_emit
from portal.labs.models import User

STATE = (
    *("geometry", "track", "shape", "name", "description", "properties"),
    *("label_id", "review_state", "is_locked"),
)
"""What a revision keeps of an ROI."""


def require_version(roi: Roi, expected_version: int) -> None:
    """Lock the row (where the database locks rows), reload it, compare."""
    now = Roi.objects.select_for_update().filter(pk=roi.pk).first()
    if now is None:
        raise NotFoundError("This ROI no longer exists.")
    for field in ("version", "deleted_at", *STATE):
        setattr(roi, field, getattr(now, field))
    if now.version != expected_version:
        raise stale_version(roi, expected_version)


def roi_write(roi: Roi, expected_version: int, fields: RoiColumns) -> None:
    """UPDATE guarded by the version: of two writers that saw the same version, one wins."""
    given = {**fields, "version": expected_version + 1, "updated_at": timezone.now()}
    if not Roi.objects.filter(pk=roi.pk, version=expected_version).update(**given):
        raise stale_version(roi, expected_version)
    for name, value in given.items():
        setattr(roi, name, value)


def stale_version(roi: Roi, expected_version: int) -> StaleVersionError:
    """The error that names both versions."""
    return StaleVersionError(
        f"You changed version {expected_version}, but the current version is {roi.version}.",
        details={"current_version": roi.version},
    )


def roi_record(
    roi: Roi,
    action: RoiAction,
    user: User,
    *,
    geometry_changed: bool,
    roi_import: RoiImport | None = None,
    once: Once | None = None,
) -> None:
    """Write the revision of a change that was just made, and emit its event."""
    revision = roi_revision(roi, action, user, roi_import, words=label_words(roi.lab_id))
    if once:
        once.sign(revision)
    revision.save(force_insert=True)
    event_emit(
        "roi.deleted" if action == RoiAction.DELETE else "roi.saved",
        lab_id=roi.lab_id,
        payload=event_payload(
            roi, action, geometry_changed=geometry_changed, is_bulk=roi_import is not None
        ),
    )
    if roi_import is not None:
        bulk_tell(canvas_id=roi.canvas_id, lab_id=roi.lab_id, user=user)


def bulk_tell(*, canvas_id: uuid.UUID, lab_id: uuid.UUID, user: User | None) -> None:
    """Emit ``rois.saved_in_bulk``, one event besides those of the ROIs (``is_bulk``): listeners do
    once for the canvas what they do for each ROI if there are few."""
    payload = {"canvas_id": str(canvas_id), "user_id": str(user.pk) if user else None}
    event_emit("rois.saved_in_bulk", lab_id=lab_id, payload=payload)


@dataclass(frozen=True, slots=True)
class LabelWords:
    """What the labels of a lab are called now, and in which published version."""

    names: Mapping[uuid.UUID, str]
    version: int | None


def label_words(lab_id: uuid.UUID) -> LabelWords:
    """By two small queries, however much is written."""
    names = dict(Label.objects.filter(lab_id=lab_id).order_by().values_list("pk", "name"))
    return LabelWords(names, label_version_now(lab_id))


def roi_revision(
    roi: Roi,
    action: RoiAction,
    user: User | None,
    roi_import: RoiImport | None = None,
    *,
    words: LabelWords,
) -> RoiRevision:
    """The row that keeps the present state of an ROI; nothing is written."""
    return RoiRevision(
        label_name=words.names.get(roi.label_id, "") if roi.label_id else "",
        label_version=words.version,
        roi=roi,
        version=roi.version,
        action=action,
        author=user,
        roi_import=roi_import,
        **{name: getattr(roi, name) for name in STATE},
    )


class RoiTold(TypedDict):
    """What ``roi.saved`` and ``roi.deleted`` tell."""

    roi_id: str
    canvas_id: str
    case_id: str
    version: int
    action: str
    geometry_changed: bool
    is_bulk: bool


def event_payload(
    roi: Roi, action: RoiAction, *, geometry_changed: bool, is_bulk: bool = False
) -> RoiTold:
    """What ``roi.saved`` and ``roi.deleted`` tell; ``is_bulk``: see ``bulk_tell``."""
    return {
        "roi_id": str(roi.pk),
        "canvas_id": str(roi.canvas_id),
        "case_id": str(roi.canvas.case_id),
        "version": roi.version,
        "action": action.value,
        "geometry_changed": geometry_changed,
        "is_bulk": is_bulk,
    }
