"""ROI writes. Each one leaves a revision and an event in the transaction that makes the change."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, TypedDict

from django.db import IntegrityError, transaction
from django.utils import timezone

from portal.annotations.geometry import RoiShape, shape_from_geojson
from portal.annotations.models import Label, ReviewState, Roi, RoiAction, RoiImport, RoiRevision
from portal.annotations.rules import require_annotate, require_review
from portal.annotations.selectors import FrameRef, frame_resolve
from portal.archive.models import Canvas
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError, StaleVersionError
from portal.core.events import event_emit, events_emit
from portal.labs.models import User

NAME_MAX = 120  # as the column


@dataclass(frozen=True, slots=True)
class RoiSaved:
    """An ROI after a write.

    Attributes:
        created: False where the same ROI was there already.
        changed: False where nothing had to be written.
        notes: what was done to the outline: ``repaired: ...``, ``clipped to the canvas``.
    """

    roi: Roi
    created: bool
    changed: bool
    notes: tuple[str, ...] = ()


class RoiChanges(TypedDict, total=False):
    """What ``roi_update`` may change; what is left out stays."""

    geometry: object
    name: str
    label: Label | None
    review_state: str
    foreign: dict[str, Any]


def roi_create(
    *,
    canvas: Canvas,
    user: User,
    geometry: object,
    label: Label | None = None,
    name: str = "",
    frame_index: int | None = None,
    frame_pts: int | None = None,
    roi_id: uuid.UUID | None = None,
    foreign: dict[str, Any] | None = None,
) -> RoiSaved:
    """Draw an ROI on a canvas; emits ``roi.saved``.

    ``roi_id`` may be chosen by the client, so that a save whose answer was lost can be sent again:
    the same id with the same content returns the ROI that is there.

    Raises:
        ForbiddenError, InvalidInputError, InvalidRoiGeometryError.
        ConflictError: the id is taken by something else.
    """
    require_annotate(user, canvas.lab_id)
    _check_label(canvas, label)
    frame = frame_resolve(canvas, index=frame_index, pts=frame_pts)
    shape = roi_shape(canvas, geometry)
    roi = roi_prepare(
        canvas=canvas,
        user=user,
        shape=shape,
        frame=frame,
        label=label,
        name=name,
        roi_id=roi_id or uuid.uuid4(),
        foreign=foreign or {},
    )
    if roi_id and (known := _created_before(roi)):
        return RoiSaved(known, created=False, changed=False, notes=shape.notes)
    try:
        roi_insert(roi=roi, user=user)
    except IntegrityError:  # the same save, sent twice at once
        if roi_id and (known := _created_before(roi)):
            return RoiSaved(known, created=False, changed=False, notes=shape.notes)
        raise
    return RoiSaved(roi, created=True, changed=True, notes=shape.notes)


def roi_shape(canvas: Canvas, geometry: object) -> RoiShape:
    """The outline as it would be stored on this canvas; see ``shape_from_geojson``."""
    return shape_from_geojson(geometry, width_px=canvas.width_px, height_px=canvas.height_px)


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
) -> Roi:
    """A row ready for ``roi_insert``: nothing is written, rights are the caller's matter."""
    return Roi(
        id=roi_id,
        lab_id=canvas.lab_id,
        canvas=canvas,
        name=_clean_name(name),
        label=label,
        frame_index=frame.index if frame else None,
        frame_pts=frame.pts if frame else None,
        foreign=foreign,
        created_by=user,
        **_shape_fields(shape),
    )


def roi_insert(*, roi: Roi, user: User) -> None:
    """Write a new row with its first revision; emits ``roi.saved``."""
    with transaction.atomic():
        _require_canvas(roi.canvas_id)
        roi.save(force_insert=True)
        _record(roi, RoiAction.CREATE, user, geometry_changed=True)


def rois_insert(*, rois: list[Roi], user: User, roi_import: RoiImport) -> None:
    """Write new rows of one canvas with their first revisions; emits ``roi.saved`` for each."""
    if not rois:
        return
    action = RoiAction.CREATE
    with transaction.atomic():
        _require_canvas(rois[0].canvas_id)
        Roi.everything.bulk_create(rois)
        RoiRevision.objects.bulk_create(_revision(roi, action, user, roi_import) for roi in rois)
        payloads = [_payload(roi, action, geometry_changed=True) for roi in rois]
        events_emit("roi.saved", lab_id=roi_import.lab_id, payloads=payloads)


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
        ConflictError: it is deleted.
        ForbiddenError, InvalidInputError, InvalidRoiGeometryError.
    """
    require_annotate(user, roi.lab_id)
    if roi.version != expected_version:
        raise _stale(roi, expected_version)
    if "review_state" in changes and changes["review_state"] != roi.review_state:
        require_review(user, roi.lab_id)
    fields, notes = _changed_fields(roi, changes)
    with transaction.atomic():
        _require_version(roi, expected_version)
        if roi.deleted_at is not None:
            raise ConflictError("This ROI is deleted. Restore it first.", code="roi-deleted")
        if fields:
            _write(roi, expected_version, fields)
            is_new = "geometry" in fields
            _record(roi, RoiAction.UPDATE, user, geometry_changed=is_new, roi_import=roi_import)
    return RoiSaved(roi, created=False, changed=bool(fields), notes=notes)


def roi_delete(*, roi: Roi, user: User, expected_version: int) -> Roi:
    """Delete an ROI (a revision; ``roi_restore`` undoes it); emits ``roi.deleted``."""
    require_annotate(user, roi.lab_id)
    with transaction.atomic():
        _require_version(roi, expected_version)
        if roi.deleted_at is None:
            _write(roi, expected_version, {"deleted_at": timezone.now()})
            _record(roi, RoiAction.DELETE, user, geometry_changed=False)
    return roi


def roi_restore(
    *,
    roi: Roi,
    user: User,
    expected_version: int | None = None,
    roi_import: RoiImport | None = None,
) -> Roi:
    """Bring a deleted ROI back as it was; emits ``roi.saved``. One that is live stays as it is."""
    require_annotate(user, roi.lab_id)
    with transaction.atomic():
        _require_version(roi, roi.version if expected_version is None else expected_version)
        if roi.deleted_at is not None:
            _write(roi, roi.version, {"deleted_at": None})
            _record(roi, RoiAction.RESTORE, user, geometry_changed=False, roi_import=roi_import)
    return roi


def _require_canvas(canvas_id: uuid.UUID) -> None:
    if not Canvas.objects.filter(pk=canvas_id).exists():
        raise NotFoundError("What this ROI is drawn on was deleted.")


def _shape_fields(shape: RoiShape) -> dict[str, Any]:
    left, top, right, bottom = shape.bounds
    return {
        "geometry": shape.geometry,
        "left": left,
        "top": top,
        "right": right,
        "bottom": bottom,
        "centroid_x": shape.centroid[0],
        "centroid_y": shape.centroid[1],
        "area_px": shape.area_px,
    }


def _created_before(roi: Roi) -> Roi | None:
    """The ROI of the same id, if it was created with the same content; None where there is none."""
    known: Roi | None = (
        Roi.everything.select_related("canvas__video", "created_by").filter(pk=roi.pk).first()
    )
    if known is None:
        return None
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


def _changed_fields(roi: Roi, changes: RoiChanges) -> tuple[dict[str, Any], tuple[str, ...]]:
    fields: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    if "geometry" in changes:
        shape = roi_shape(roi.canvas, changes["geometry"])
        notes = shape.notes
        if shape.geometry != roi.geometry:
            # Measurements and "this is an ellipse" were true of the old outline only.
            fields |= _shape_fields(shape) | {"foreign": changes.get("foreign", {})}
    if "name" in changes and (name := _clean_name(changes["name"])) != roi.name:
        fields["name"] = name
    if "label" in changes:
        _check_label(roi.canvas, label := changes["label"])
        if (label.pk if label else None) != roi.label_id:
            fields["label"] = label
    if "review_state" in changes:
        if changes["review_state"] != roi.review_state:
            fields["review_state"] = _review_state(changes["review_state"])
    elif {"geometry", "label"} & fields.keys() and roi.review_state != ReviewState.UNREVIEWED:
        fields["review_state"] = ReviewState.UNREVIEWED
    return fields, notes


def _clean_name(name: str) -> str:
    name = " ".join(name.split())
    if len(name) > NAME_MAX:
        raise InvalidInputError(f"name: {len(name)} characters; {NAME_MAX} at most.")
    return name


def _review_state(value: str) -> str:
    if value not in ReviewState.values:
        raise InvalidInputError(f"review_state: one of {', '.join(ReviewState.values)}.")
    return value


def _check_label(canvas: Canvas, label: Label | None) -> None:
    if label is not None and label.lab_id != canvas.lab_id:
        raise InvalidInputError("label: no such label in this lab.", code="unknown-label")


def _require_version(roi: Roi, expected_version: int) -> None:
    """Lock the row (where the database locks rows), reload it, compare."""
    now = Roi.objects.select_for_update().filter(pk=roi.pk).first()
    if now is None:
        raise NotFoundError("There is no such ROI any more.")
    for field in ("version", "deleted_at", "review_state", "geometry", "name", "label_id"):
        setattr(roi, field, getattr(now, field))
    if now.version != expected_version:
        raise _stale(roi, expected_version)


def _write(roi: Roi, expected_version: int, fields: dict[str, Any]) -> None:
    """UPDATE guarded by the version: of two writers that saw the same version, one wins."""
    fields = fields | {"version": expected_version + 1, "updated_at": timezone.now()}
    if not Roi.objects.filter(pk=roi.pk, version=expected_version).update(**fields):
        raise _stale(roi, expected_version)
    for name, value in fields.items():
        setattr(roi, name, value)


def _stale(roi: Roi, expected_version: int) -> StaleVersionError:
    return StaleVersionError(
        f"You changed version {expected_version}, but the current version is {roi.version}.",
        details={"current_version": roi.version},
    )


def _record(
    roi: Roi,
    action: RoiAction,
    user: User,
    *,
    geometry_changed: bool,
    roi_import: RoiImport | None = None,
) -> None:
    _revision(roi, action, user, roi_import).save(force_insert=True)
    event_emit(
        "roi.deleted" if action == RoiAction.DELETE else "roi.saved",
        lab_id=roi.lab_id,
        payload=_payload(roi, action, geometry_changed=geometry_changed),
    )


def _revision(roi: Roi, action: RoiAction, user: User, roi_import: RoiImport | None) -> RoiRevision:
    return RoiRevision(
        roi=roi,
        version=roi.version,
        action=action,
        geometry=roi.geometry,
        name=roi.name,
        label_id=roi.label_id,
        review_state=roi.review_state,
        author=user,
        roi_import=roi_import,
    )


def _payload(roi: Roi, action: RoiAction, *, geometry_changed: bool) -> dict[str, Any]:
    return {
        "roi_id": str(roi.pk),
        "canvas_id": str(roi.canvas_id),
        "case_id": str(roi.canvas.case_id),
        "version": roi.version,
        "action": action.value,
        "geometry_changed": geometry_changed,
    }
