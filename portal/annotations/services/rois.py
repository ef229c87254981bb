"""ROI writes. Each one leaves a revision and an event in the transaction that makes the change."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from portal.annotations.geometry import RoiShape
from portal.annotations.models import Label, Roi, RoiAction, RoiImport, RoiKind
from portal.annotations.properties import description_clean, properties_clean
from portal.annotations.rules import require_annotate
from portal.annotations.selectors import FrameRef, frame_resolve
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
from portal.annotations.services.once import Once, at_most_once
from portal.annotations.services.reviewing import require_step
from portal.annotations.services.tracks import track_clean
from portal.annotations.services.writing import (
    bulk_tell,
    event_payload,
    label_words,
    require_version,
    roi_record,
    roi_revision,
    roi_write,
    stale_version,
)
from portal.archive.models import Canvas
from portal.core.database.rows import rows_insert
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError
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
    once: Once | None = None,
) -> RoiSaved:
    """Draw an ROI on a canvas; emits ``roi.saved``.

    ``roi_id`` may be chosen by the client, so that a save whose answer was lost can be sent again:
    the same id with the same content returns the ROI that is there. So does the same ``once``.

    Args:
        kind: of ``RoiKind``; an area that is not an ellipse is stored as a polygon.
        track: key frames besides its own, see ``services.tracks``.

    Raises:
        ForbiddenError, InvalidInputError, InvalidRoiGeometryError.
        ConflictError: the id is taken by something else.
        KeyReusedError: the key of ``once`` stands for another request.
    """
    require_annotate(user, canvas.lab_id)
    check_label(canvas, label)
    frame = frame_resolve(canvas, index=frame_index, pts=frame_pts)
    shape = roi_shape(canvas, geometry)
    roi_id = roi_id or (once.roi_id if once else None)
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
    if roi_id and (known := _created_before(roi, once)):
        return RoiSaved(known, created=False, changed=False, notes=shape.notes)
    try:
        roi_insert(roi=roi, user=user, once=once)
    except IntegrityError:  # the same save, sent twice at once
        if roi_id and (known := _created_before(roi, once)):
            return RoiSaved(known, created=False, changed=False, notes=shape.notes)
        raise
    return RoiSaved(roi, created=True, changed=True, notes=shape.notes)


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
    """A row ready for ``roi_insert``: nothing is written, rights are the caller's matter."""
    found = shape_kind(shape, kind)
    require_area(found, track)
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
        shape=found,
        is_locked=is_locked,
        track=track_clean(canvas, own_index=frame.index if frame else None, track=track),
        created_by=user,
        **shape_fields(shape),
    )


def roi_insert(*, roi: Roi, user: User, once: Once | None = None) -> None:
    """Write a new row with its first revision; emits ``roi.saved``."""
    with transaction.atomic():
        _require_canvas(roi.canvas_id)
        roi.save(force_insert=True)
        roi_record(roi, RoiAction.CREATE, user, geometry_changed=True, once=once)


def rois_insert(*, rois: list[Roi], user: User, roi_import: RoiImport) -> None:
    """Write new rows of one canvas with their first revisions; emits ``roi.saved`` for each."""
    if not rois:
        return
    action = RoiAction.CREATE
    with transaction.atomic():
        _require_canvas(rois[0].canvas_id)
        rows_insert(rois)
        words = label_words(roi_import.lab_id)
        rows_insert([roi_revision(roi, action, user, roi_import, words=words) for roi in rois])
        payloads = [event_payload(roi, action, geometry_changed=True, is_bulk=True) for roi in rois]
        events_emit("roi.saved", lab_id=roi_import.lab_id, payloads=payloads)
        bulk_tell(canvas_id=roi_import.canvas_id, lab_id=roi_import.lab_id, user=user)


def roi_update(
    *,
    roi: Roi,
    user: User,
    expected_version: int,
    changes: RoiChanges,
    roi_import: RoiImport | None = None,
    once: Once | None = None,
) -> RoiSaved:
    """Change an ROI whose version is still ``expected_version``; emits ``roi.saved``.

    A new outline or label takes an earlier review back, unless the same change reviews.

    Args:
        roi_import: the import that this change is part of.
        once: the request; one that was carried out before changes nothing more.

    Raises:
        StaleVersionError: someone else changed it first; ``details["current_version"]``.
        ConflictError: it is deleted, or locked and the change does not unlock it.
        ForbiddenError, InvalidInputError, InvalidRoiGeometryError.
    """
    require_annotate(user, roi.lab_id)
    with at_most_once(roi, once):
        if roi.version != expected_version:
            raise stale_version(roi, expected_version)
        fields, notes = changed_fields(roi, changes)
        with transaction.atomic():
            require_version(roi, expected_version)
            if "review_state" in fields and "review_state" in changes:
                require_step(roi, user, fields)
            if roi.deleted_at is not None:
                raise ConflictError("This ROI is deleted. Restore it first.", code="roi-deleted")
            _change(roi, fields, RoiAction.UPDATE, user, roi_import=roi_import, once=once)
        return RoiSaved(roi, created=False, changed=bool(fields), notes=notes)
    return RoiSaved(roi, created=False, changed=False)


def roi_delete(
    *,
    roi: Roi,
    user: User,
    expected_version: int,
    despite_lock: bool = False,
    once: Once | None = None,
) -> Roi:
    """Delete an ROI (a revision; ``roi_restore`` undoes it); emits ``roi.deleted``.

    Raises:
        ConflictError: it is locked, unless ``despite_lock``.
        StaleVersionError, ForbiddenError.
    """
    require_annotate(user, roi.lab_id)
    with at_most_once(roi, once), transaction.atomic():
        require_version(roi, expected_version)
        if roi.deleted_at is None:
            if not despite_lock:
                require_unlocked(roi)
            gone: RoiColumns = {"deleted_at": timezone.now()}
            _change(roi, gone, RoiAction.DELETE, user, once=once)
    return roi


def roi_restore(
    *,
    roi: Roi,
    user: User,
    expected_version: int | None = None,
    changes: RoiChanges | None = None,
    roi_import: RoiImport | None = None,
    once: Once | None = None,
) -> RoiSaved:
    """Bring a deleted ROI back as one new version; emits ``roi.saved``.

    Args:
        changes: what it becomes on the way; without them it comes back as it was. One that is
            live is changed by them, or stays as it is.

    Raises:
        As ``roi_update``.
    """
    require_annotate(user, roi.lab_id)
    with at_most_once(roi, once), transaction.atomic():
        require_version(roi, roi.version if expected_version is None else expected_version)
        fields, notes = changed_fields(roi, changes or {})
        action = RoiAction.UPDATE
        if roi.deleted_at is not None:
            action, fields["deleted_at"] = RoiAction.RESTORE, None
        _change(roi, fields, action, user, roi_import=roi_import, once=once)
        return RoiSaved(roi, created=False, changed=bool(fields), notes=notes)
    return RoiSaved(roi, created=False, changed=False)


def version_changes(roi: Roi, version: int) -> RoiChanges:
    """What makes an ROI as it was in a version; ``InvalidInputError`` if it has no such version."""
    was = roi.revisions.select_related("label").filter(version=version).first()
    if was is None:
        raise InvalidInputError(f"version: this ROI has no version {version}.")
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
    once: Once | None = None,
) -> None:
    """Write the fields, if there are any, with their revision and event."""
    if not fields:
        return
    roi_write(roi, roi.version, fields)
    is_new = "geometry" in fields
    roi_record(roi, action, user, geometry_changed=is_new, roi_import=roi_import, once=once)


def _require_canvas(canvas_id: uuid.UUID) -> None:
    if not Canvas.objects.filter(pk=canvas_id).exists():
        raise NotFoundError("The item that this ROI is drawn on was deleted.")


def _created_before(roi: Roi, once: Once | None) -> Roi | None:
    """The ROI of the same id, if it was created with the same content; None if there is none."""
    known: Roi | None = (
        Roi.everything.select_related("canvas__video", "created_by").filter(pk=roi.pk).first()
    )
    if known is None or (once and once.was_done(known)):
        return known
    first = known.revisions.filter(version=1).first()
    if (
        first is None
        or known.canvas_id != roi.canvas_id
        or (known.frame_index, known.frame_pts) != (roi.frame_index, roi.frame_pts)
        or (first.geometry, first.name, first.label_id) != (roi.geometry, roi.name, roi.label_id)
    ):
        raise ConflictError(
            f"id: {roi.pk} is taken by another ROI. Choose a new UUID.", code="id-taken"
        )
    return known
