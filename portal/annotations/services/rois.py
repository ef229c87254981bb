"""ROI writes. Each one leaves a revision and an event in the transaction that makes the change."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from portal.annotations.events import RoiEvent
from portal.annotations.geometry import RoiShape
from portal.annotations.models import Label, Roi, RoiAction, RoiImport, RoiKind
from portal.annotations.properties import description_clean, properties_clean
from portal.annotations.rules import require_annotate
from portal.annotations.selectors.frames import FrameRef, frame_resolve
from portal.annotations.services.fields import (
    RoiChanges,
    RoiColumns,
    changed_fields,
    check_label,
    clean_name,
    require_area,
    require_unlocked,
    roi_shape,
    shape_fields,
    shape_kind,
)
from portal.annotations.services.reviewing import require_step
from portal.annotations.services.tracks import track_clean
from portal.annotations.services.writing import (
    ROIS,
    bulk_tell,
    event_payload,
    label_words,
    roi_record,
    roi_revision,
)
from portal.archive.models import Canvas
from portal.core.database.rows import rows_insert
from portal.core.errors import InvalidInputError
from portal.core.events import events_emit
from portal.labs.models import User


@dataclass(frozen=True, slots=True)
class RoiSaved:
    """An ROI after a write.

    Attributes:
        created: False if the same ROI was there already.
        changed: False if nothing had to be written.
        notes: what was done to the outline: ``repaired: ...``, ``clipped to the canvas``.
    """

    roi: Roi
    created: bool
    changed: bool
    notes: tuple[str, ...] = ()


def roi_create(
    *,
    canvas: Canvas,
    user: User,
    geometry: object,
    label: Label | None = None,
    name: str = "",
    description: str = "",
    properties: object = None,
    frame_index: int | None = None,
    frame_pts: int | None = None,
    roi_id: uuid.UUID | None = None,
    foreign: dict[str, Any] | None = None,
    kind: str = RoiKind.POLYGON,
    is_locked: bool = False,
    track: object = (),
) -> RoiSaved:
    """Draw an ROI on a canvas; emits ``roi.saved``.

    ``roi_id`` may be chosen by the client, so that a save whose answer was lost can be sent again:
    the same id with the same content returns the ROI that is there.

    Args:
        kind: of ``RoiKind``; an area that is not an ellipse is stored as a polygon.
        track: key frames besides its own, see ``services.tracks``.

    Raises:
        ForbiddenError, InvalidInputError, InvalidRoiGeometryError.
        ConflictError: the id is taken by something else.
    """
    require_annotate(user, canvas.lab_id)
    check_label(canvas, label)
    frame = frame_resolve(canvas, index=frame_index, pts=frame_pts)
    shape = roi_shape(canvas, geometry)
    roi = roi_prepare(
        canvas=canvas,
        user=user,
        shape=shape,
        frame=frame,
        label=label,
        name=name,
        description=description,
        properties=properties,
        roi_id=roi_id or uuid.uuid4(),
        foreign=foreign or {},
        kind=kind,
        is_locked=is_locked,
        track=track,
    )
    record = partial(roi_record, roi, RoiAction.CREATE, user, geometry_changed=True)
    saved = ROIS.insert_once(roi, record, can_exist=roi_id is not None)
    is_new = saved is roi
    return RoiSaved(saved, created=is_new, changed=is_new, notes=shape.notes)


def roi_prepare(
    *,
    canvas: Canvas,
    user: User,
    shape: RoiShape,
    frame: FrameRef | None,
    label: Label | None,
    name: str,
    roi_id: uuid.UUID,
    foreign: dict[str, Any],
    kind: str = RoiKind.POLYGON,
    is_locked: bool = False,
    track: object = (),
    description: str = "",
    properties: object = None,
) -> Roi:
    """A row ready to be inserted: nothing is written, rights are the caller's matter."""
    shape_name = shape_kind(shape, kind)
    require_area(shape_name, track)
    return Roi(
        id=roi_id,
        lab_id=canvas.lab_id,
        canvas=canvas,
        name=clean_name(name),
        description=description_clean(description),
        properties=properties_clean(properties or {}),
        label=label,
        frame_index=frame.index if frame else None,
        frame_pts=frame.pts if frame else None,
        foreign=foreign,
        shape=shape_name,
        is_locked=is_locked,
        track=track_clean(canvas, own_index=frame.index if frame else None, track=track),
        created_by=user,
        **shape_fields(shape),
    )


def rois_insert(*, rois: list[Roi], user: User, roi_import: RoiImport) -> None:
    """Write new rows of one canvas with their first revisions; emits ``roi.saved`` for each."""
    if not rois:
        return
    action = RoiAction.CREATE
    with transaction.atomic():
        ROIS.require_canvas(rois[0].canvas_id)
        rows_insert(rois)
        words = label_words(roi_import.lab_id)
        rows_insert([roi_revision(roi, action, user, roi_import, words=words) for roi in rois])
        payloads = [event_payload(roi, action, geometry_changed=True, is_bulk=True) for roi in rois]
        events_emit(RoiEvent.SAVED, lab_id=roi_import.lab_id, payloads=payloads)
        bulk_tell(canvas_id=roi_import.canvas_id, lab_id=roi_import.lab_id, user=user)


def roi_update(
    *,
    roi: Roi,
    user: User,
    expected_version: int,
    changes: RoiChanges,
    roi_import: RoiImport | None = None,
) -> RoiSaved:
    """Change an ROI whose version is still ``expected_version``; emits ``roi.saved``.

    A new outline or label takes an earlier review back, unless the same change reviews.

    Args:
        roi_import: the import that this change is part of.

    Raises:
        StaleVersionError: someone else changed it first; ``details["current_version"]``.
        ConflictError: it is deleted, or locked and the change does not unlock it.
        ForbiddenError, InvalidInputError, InvalidRoiGeometryError.
    """
    require_annotate(user, roi.lab_id)
    ROIS.require(roi, expected_version)
    fields, notes = changed_fields(roi, changes)
    with ROIS.locked(roi, expected_version):
        if "review_state" in fields and "review_state" in changes:
            require_step(roi, user, fields)
        ROIS.require_live(roi)
        _change(roi, fields, RoiAction.UPDATE, user, roi_import=roi_import)
    return RoiSaved(roi, created=False, changed=bool(fields), notes=notes)


def roi_delete(
    *,
    roi: Roi,
    user: User,
    expected_version: int,
    despite_lock: bool = False,
) -> Roi:
    """Delete an ROI (a revision; ``roi_restore`` undoes it); emits ``roi.deleted``.

    Raises:
        ConflictError: it is locked, unless ``despite_lock``.
        StaleVersionError, ForbiddenError.
    """
    require_annotate(user, roi.lab_id)
    with ROIS.locked(roi, expected_version):
        if roi.deleted_at is None:
            if not despite_lock:
                require_unlocked(roi)
            deletion: RoiColumns = {"deleted_at": timezone.now()}
            _change(roi, deletion, RoiAction.DELETE, user)
    return roi


def roi_restore(
    *,
    roi: Roi,
    user: User,
    expected_version: int | None = None,
    changes: RoiChanges | None = None,
    roi_import: RoiImport | None = None,
) -> RoiSaved:
    """Restore a deleted ROI as one new version; emits ``roi.saved``.

    Args:
        changes: what it becomes on the way; without them it comes back as it was. One that is
            live is changed by them, or stays as it is.

    Raises:
        As ``roi_update``.
    """
    require_annotate(user, roi.lab_id)
    with ROIS.locked(roi, expected_version):
        fields, notes = changed_fields(roi, changes or {})
        action = RoiAction.UPDATE
        if roi.deleted_at is not None:
            action, fields["deleted_at"] = RoiAction.RESTORE, None
        _change(roi, fields, action, user, roi_import=roi_import)
    return RoiSaved(roi, created=False, changed=bool(fields), notes=notes)


def version_changes(roi: Roi, version: int) -> RoiChanges:
    """Changes that restore a version of an ROI; ``InvalidInputError`` if there is no such
    version."""
    was = roi.revisions.select_related("label").filter(version=version).first()
    if was is None:
        raise InvalidInputError(f"version: this region has no version {version}.")
    return {
        "geometry": was.geometry,
        "track": was.track,
        "shape": was.shape,
        "name": was.name,
        "description": was.description,
        "properties": was.properties,
        "label": was.label,
    }


def _change(
    roi: Roi,
    fields: RoiColumns,
    action: RoiAction,
    user: User,
    *,
    roi_import: RoiImport | None = None,
) -> None:
    """Write the fields, if there are any, with their revision and event."""
    if not fields:
        return
    ROIS.write(roi, fields)
    is_geometry_changed = "geometry" in fields
    roi_record(
        roi,
        action,
        user,
        geometry_changed=is_geometry_changed,
        reviewed_as=fields.get("review_state"),
        roi_import=roi_import,
    )
