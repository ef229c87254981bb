"""Revisions and events of ROIs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from portal.annotations.events import RoiEvent
from portal.annotations.models import (
    Label,
    Roi,
    RoiAction,
    RoiImport,
    RoiRevision,
)
from portal.annotations.selectors.labels import label_version_now
from portal.annotations.services.versions import Versions
from portal.core.events import event_emit
from portal.labs.models import User

STATE = (
    *("geometry", "track", "shape", "name", "description", "properties"),
    *("label_id", "review_state", "is_locked"),
)
"""Fields of an ROI that a revision stores."""


ROIS = Versions(
    Roi,
    "region",
    "roi-deleted",
    fields=STATE,
    state=("geometry", "name", "label_id"),
    place=("canvas_id", "frame_index", "frame_pts"),
)


def roi_record(
    roi: Roi,
    action: RoiAction,
    user: User,
    *,
    geometry_changed: bool,
    reviewed_as: str | None = None,
    roi_import: RoiImport | None = None,
) -> None:
    """Write the revision of a change that was just made, and emit its event.

    Args:
        reviewed_as: Review state that the change set; None if it set none.
    """
    revision = roi_revision(roi, action, user, roi_import, words=label_words(roi.lab_id))
    revision.save(force_insert=True)
    event_emit(
        RoiEvent.DELETED if action == RoiAction.DELETE else RoiEvent.SAVED,
        lab_id=roi.lab_id,
        payload=event_payload(
            roi, action, geometry_changed=geometry_changed, is_bulk=roi_import is not None
        )
        | {"user_id": str(user.pk), "reviewed_as": reviewed_as},
    )
    if roi_import is not None:
        bulk_tell(canvas_id=roi.canvas_id, lab_id=roi.lab_id, user=user)


def bulk_tell(*, canvas_id: uuid.UUID, lab_id: uuid.UUID, user: User | None) -> None:
    """Emit ``rois.saved_in_bulk``, one event in addition to those of the ROIs (``is_bulk``).

    Listeners then act once for the canvas instead of once for each ROI.
    """
    payload = {"canvas_id": str(canvas_id), "user_id": str(user.pk) if user else None}
    event_emit(RoiEvent.SAVED_IN_BULK, lab_id=lab_id, payload=payload)


@dataclass(frozen=True, slots=True)
class LabelWords:
    """Current label names of a lab, and its published version."""

    names: Mapping[uuid.UUID, str]
    version: int | None


def label_words(lab_id: uuid.UUID) -> LabelWords:
    """Label names and version, by two small queries for any number of ROIs."""
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


class RoiEventPayload(TypedDict):
    """Payload of ``roi.saved`` and ``roi.deleted``."""

    roi_id: str
    canvas_id: str
    case_id: str
    version: int
    action: str
    geometry_changed: bool
    is_bulk: bool


def event_payload(
    roi: Roi, action: RoiAction, *, geometry_changed: bool, is_bulk: bool = False
) -> RoiEventPayload:
    """Payload of ``roi.saved`` and ``roi.deleted``; ``is_bulk``: see ``bulk_tell``."""
    return {
        "roi_id": str(roi.pk),
        "canvas_id": str(roi.canvas_id),
        "case_id": str(roi.canvas.case_id),
        "version": roi.version,
        "action": action.value,
        "geometry_changed": geometry_changed,
        "is_bulk": is_bulk,
    }
