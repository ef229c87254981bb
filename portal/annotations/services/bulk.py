"""Many ROIs of one canvas changed as one step: all of it in one transaction, or nothing."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from portal.annotations.events import RoiEvent
from portal.annotations.geometry import RoiShape
from portal.annotations.models import Label, Roi, RoiAction, RoiKind
from portal.annotations.rules import require_annotate
from portal.annotations.selectors.frames import FrameRef, frame_resolve
from portal.annotations.services.fields import (
    RoiChanges,
    RoiColumns,
    changed_fields,
    check_label,
    require_unlocked,
    roi_shape,
)
from portal.annotations.services.rois import roi_prepare
from portal.annotations.services.writing import bulk_tell, event_payload, label_words, roi_revision
from portal.archive.models import Canvas
from portal.core.database.rows import rows_insert, rows_update
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError, StaleVersionError
from portal.core.events import events_emit
from portal.labs.models import User

MAX_STEPS = 10_000  # takes seconds, well below the 15 s of ``OVERLAP_S`` in review.selectors.live
CHUNK = 500  # rows of one statement
BULK_FROM = 25  # changes of more outlines are embedded by one job, of fewer by a job each
MAX_GROUPED_UPDATES = 10  # distinct changes with one statement each; more are written row by row


@dataclass(frozen=True, slots=True)
class RoiStep:
    """Change of one ROI.

    Attributes:
        version: Version that the change is based on; None for a new ROI.
        changes: Changes of an update, or fields of a new ROI, which then require ``geometry``.
        frame_index, frame_pts: Video frame of a new ROI.
    """

    action: RoiAction
    roi_id: uuid.UUID
    version: int | None = None
    changes: RoiChanges = field(default_factory=RoiChanges)
    frame_index: int | None = None
    frame_pts: int | None = None


@dataclass(slots=True)
class Written:
    """An ROI to save, and the change made to it."""

    roi: Roi
    action: RoiAction
    fields: RoiColumns

    @property
    def geometry_changed(self) -> bool:
        """Return whether what follows from the outline has to be made again."""
        return self.action == RoiAction.CREATE or "geometry" in self.fields

    @property
    def asks_for_vector(self) -> bool:
        """Return whether it has to be embedded, or to get back the vector it had."""
        return self.geometry_changed or self.action == RoiAction.RESTORE

    @property
    def is_its_own(self) -> bool:
        """Return whether the values are specific to this row: an outline, a track, properties."""
        return self.geometry_changed or not {"track", "properties"}.isdisjoint(self.fields)


def rois_change(*, canvas: Canvas, user: User, steps: Sequence[RoiStep]) -> None:
    """Carry out all steps, or none; each leaves a revision, and emits what a single one would.

    A step that finds its ROI as it wants it does nothing, so a request whose answer was lost can
    be sent again.

    Raises:
        StaleVersionError: ``details["stale"]`` lists the ids that someone else changed.
        NotFoundError: one of them is not on this canvas.
        ConflictError: one is deleted or locked. ForbiddenError, InvalidInputError.
    """
    require_annotate(user, canvas.lab_id)
    _refuse_doubles(steps)
    shapes = _shapes(canvas, steps)
    try:
        _carry_out(canvas, user, steps, shapes)
    except IntegrityError:  # a concurrent request has created the same rows
        _carry_out(canvas, user, steps, shapes)


def _carry_out(
    canvas: Canvas,
    user: User,
    steps: Sequence[RoiStep],
    shapes: dict[uuid.UUID, RoiShape],
) -> None:
    frames: dict[tuple[int | None, int | None], FrameRef | None] = {}
    now = timezone.now()
    with transaction.atomic():
        rows = _locked_rows(canvas, user, steps)
        stale = [step.roi_id for step in steps if _is_stale(rows, step)]
        if stale:
            raise StaleVersionError(
                f"{len(stale)} of {len(steps)} regions were changed by someone else."
                " Nothing was written.",
                details={"stale": [str(roi_id) for roi_id in stale]},
            )
        new = [
            _new_roi(canvas, user, step, shapes[step.roi_id], frames)
            for step in steps
            if step.action == RoiAction.CREATE and step.roi_id not in rows
        ]
        changed = [
            written
            for step in steps
            if step.roi_id in rows and (written := _apply(rows[step.roi_id], step, now))
        ]
        rois_save(canvas, user, new, changed)


def _refuse_doubles(steps: Sequence[RoiStep]) -> None:
    if not 0 < len(steps) <= MAX_STEPS:
        raise InvalidInputError(f"changes: {len(steps):,}; from 1 to {MAX_STEPS:,} in one request.")
    if len({step.roi_id for step in steps}) != len(steps):
        raise InvalidInputError("changes: a region is listed twice.")


def _shapes(canvas: Canvas, steps: Sequence[RoiStep]) -> dict[uuid.UUID, RoiShape]:
    """Outlines of new ROIs, checked before anything is locked."""
    creating = [step for step in steps if step.action == RoiAction.CREATE]
    return {step.roi_id: roi_shape(canvas, step.changes.get("geometry")) for step in creating}


def _locked_rows(canvas: Canvas, user: User, steps: Sequence[RoiStep]) -> dict[uuid.UUID, Roi]:
    """The rows, locked a chunk at a time in the order of all their ids, as everywhere: of two
    requests that lock the same rows in different orders each would wait for the other.

    To the person, hidden ROIs are not there, except that their ids cannot be used again.
    """
    if not Canvas.objects.filter(pk=canvas.pk).exists():
        raise NotFoundError("The item that these regions are drawn on was deleted.")
    locked: dict[uuid.UUID, Roi] = {}
    ids = sorted(step.roi_id for step in steps)
    for start in range(0, len(ids), CHUNK):
        part = ids[start : start + CHUNK]
        rows = Roi.objects.select_for_update().filter(pk__in=part).order_by("pk").defer("foreign")
        locked |= {roi.pk: roi for roi in rows}
    hidden = _hidden_ids(user, canvas)
    for step in steps:
        roi = locked.get(step.roi_id)
        if roi is not None and roi.canvas_id == canvas.pk and roi.pk not in hidden:
            roi.canvas = canvas
        elif roi is not None and step.action == RoiAction.CREATE:
            raise ConflictError(f"id: {roi.pk} is taken by another region.", code="id-taken")
        elif step.action != RoiAction.CREATE:
            raise NotFoundError(f"There is no region {step.roi_id} on this canvas.")
    return locked


def _hidden_ids(user: User, canvas: Canvas) -> set[uuid.UUID]:
    rows = Roi.all_objects.filter(canvas=canvas).hidden_from(user).order_by()
    return set(rows.values_list("pk", flat=True))


def _is_stale(rois: dict[uuid.UUID, Roi], step: RoiStep) -> bool:
    roi = rois.get(step.roi_id)
    if roi is None or step.action == RoiAction.CREATE or roi.version == step.version:
        return False
    return _difference(roi, step, timezone.now()) != {}


def _difference(roi: Roi, step: RoiStep, now: datetime) -> RoiColumns:
    """Columns that the step changes; empty if the ROI has the requested state already."""
    if step.action == RoiAction.DELETE:
        return {} if roi.deleted_at else {"deleted_at": now}
    if step.action == RoiAction.RESTORE:
        return {"deleted_at": None} if roi.deleted_at else {}
    return changed_fields(roi, step.changes)[0]


def _apply(roi: Roi, step: RoiStep, now: datetime) -> Written | None:
    fields = _difference(roi, step, now)
    if step.action == RoiAction.CREATE and (fields or roi.deleted_at):
        raise ConflictError(f"id: {roi.pk} is taken by another region.", code="id-taken")
    if not fields:
        return None
    if step.action == RoiAction.DELETE:
        require_unlocked(roi)
    elif step.action == RoiAction.UPDATE and roi.deleted_at is not None:
        raise ConflictError("A region is deleted. Restore it first.", code="roi-deleted")
    for name, value in fields.items():
        setattr(roi, name, value)
    roi.version += 1
    roi.updated_at = now
    return Written(roi, step.action, fields)


def _new_roi(
    canvas: Canvas,
    user: User,
    step: RoiStep,
    shape: RoiShape,
    frames: dict[tuple[int | None, int | None], FrameRef | None],
) -> Roi:
    frame_key = (step.frame_index, step.frame_pts)
    if frame_key not in frames:
        frames[frame_key] = frame_resolve(canvas, index=step.frame_index, pts=step.frame_pts)
    label: Label | None = step.changes.get("label")
    check_label(canvas, label)
    return roi_prepare(
        canvas=canvas,
        user=user,
        shape=shape,
        frame=frames[frame_key],
        label=label,
        name=step.changes.get("name", ""),
        description=step.changes.get("description", ""),
        properties=step.changes.get("properties"),
        roi_id=step.roi_id,
        foreign={},
        kind=step.changes.get("shape", RoiKind.POLYGON),
        is_locked=step.changes.get("is_locked", False),
        track=step.changes.get("track", ()),
    )


def rois_save(
    canvas: Canvas,
    user: User | None,
    new: list[Roi],
    changed: list[Written],
) -> None:
    """Rows, revisions and events by a statement each, however many there are.

    Args:
        user: in whose name; None for an account that is gone.
    """
    rows_insert(new)
    _update(changed)
    written = [Written(roi, RoiAction.CREATE, {}) for roi in new] + changed
    words = label_words(canvas.lab_id)
    revisions = [roi_revision(change.roi, change.action, user, words=words) for change in written]
    rows_insert(revisions)
    is_bulk = sum(change.asks_for_vector for change in written) > BULK_FROM
    for name, is_deleted in ((RoiEvent.SAVED, False), (RoiEvent.DELETED, True)):
        payloads = [
            event_payload(
                change.roi, change.action, geometry_changed=change.geometry_changed, is_bulk=is_bulk
            )
            for change in written
            if (change.action == RoiAction.DELETE) == is_deleted
        ]
        if payloads:
            events_emit(name, lab_id=canvas.lab_id, payloads=payloads)
    if is_bulk:
        bulk_tell(canvas_id=canvas.pk, lab_id=canvas.lab_id, user=user)


def _update(changed: list[Written]) -> None:
    """Rows that change alike by one plain UPDATE, which costs far less than values of their own."""
    alike: defaultdict[frozenset[tuple[str, Any]], list[Roi]] = defaultdict(list)
    for change in changed:
        if not change.is_its_own:
            alike[frozenset(change.fields.items())].append(change.roi)
    single_changes = [
        change for change in changed if change.is_its_own or len(alike) > MAX_GROUPED_UPDATES
    ]
    for fields, rois in alike.items() if len(alike) <= MAX_GROUPED_UPDATES else ():
        updates = dict(fields) | {"version": F("version") + 1, "updated_at": rois[0].updated_at}
        for start in range(0, len(rois), CHUNK):
            ids = [roi.pk for roi in rois[start : start + CHUNK]]
            Roi.objects.filter(pk__in=ids).update(**updates)
    names = {name for change in single_changes for name in change.fields}
    rows_update(
        [change.roi for change in single_changes], [*sorted(names), "version", "updated_at"]
    )
