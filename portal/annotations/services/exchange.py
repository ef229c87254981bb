"""ROIs in from other tools: every feature is imported or refused with its reason, never dropped."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction

from portal.annotations.geometry import RoiShape
from portal.annotations.models import Label, Roi, RoiImport
from portal.annotations.qupath import Feature, FeatureError, feature_read, features_of
from portal.annotations.rules import may_manage_labels, require_annotate, require_manage_labels
from portal.annotations.selectors import FrameRef, frame_resolve
from portal.annotations.services.fields import RoiChanges, roi_shape
from portal.annotations.services.imports import roi_import_undo
from portal.annotations.services.labels import label_create, label_set_ensure
from portal.annotations.services.rois import roi_prepare, roi_restore, roi_update, rois_insert
from portal.archive.models import Canvas, CanvasKind
from portal.core.errors import InvalidInputError, PortalError
from portal.labs.models import User

CHUNK = 100
"""ROIs in a transaction: SQLite's only writer is kept for some tenths of a second at most."""


@dataclass(frozen=True, slots=True)
class ImportItem:
    """What became of one feature.

    Attributes:
        index: its place in the document, from 0.
        status: created, updated, restored, unchanged or refused.
        notes: what was repaired, clipped or left out.
        reason: why it was refused.
    """

    index: int
    status: str
    roi_id: uuid.UUID | None = None
    notes: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of a document; every feature is accounted for.

    ``import_id`` is what ``roi_import_undo`` takes back; None where nothing was changed.
    """

    items: tuple[ImportItem, ...]
    labels_created: tuple[str, ...] = ()
    import_id: uuid.UUID | None = None

    def count(self, status: str) -> int:
        """How many features ended so."""
        return Counter(item.status for item in self.items)[status]

    @property
    def repaired(self) -> int:
        """How many outlines had to be repaired or clipped."""
        return sum(item.status != "refused" and bool(item.notes) for item in self.items)


@dataclass(slots=True)
class _Plan:
    """One feature on its way in."""

    index: int
    feature: Feature
    shape: RoiShape
    frame: FrameRef | None
    roi_id: uuid.UUID
    label: Label | None = None


@dataclass(slots=True)
class _Import:
    canvas: Canvas
    user: User
    row: RoiImport
    items: dict[int, ImportItem] = field(default_factory=dict)
    frames: dict[int, FrameRef | None] = field(default_factory=dict)

    def refuse(self, index: int, reason: str) -> None:
        self.items[index] = ImportItem(index, "refused", reason=reason)

    def add(self, plan: _Plan, status: str) -> None:
        notes = (*plan.feature.notes, *plan.shape.notes)
        self.items[plan.index] = ImportItem(plan.index, status, plan.roi_id, notes)


def roi_import(
    *,
    canvas: Canvas,
    user: User,
    document: object,
    create_labels: bool | None = None,
    strict: bool = False,
) -> ImportReport:
    """Bring a GeoJSON document onto a canvas; emits ``roi.saved`` for each ROI.

    Written in many short transactions, so that others save meanwhile, under one ``RoiImport``.
    One that breaks off leaves what was written; importing again completes it.

    A feature whose id is an ROI of this canvas updates (or restores) it; importing the same
    document again changes nothing.

    Args:
        create_labels: add classes that the lab's labels lack (None: where the person may);
            otherwise features of unknown classes are refused.
        strict: refuse the whole document where one feature has to be refused.

    Raises:
        ForbiddenError, InvalidInputError (``details["refused"]`` lists the reasons).
    """
    require_annotate(user, canvas.lab_id)
    if create_labels:
        require_manage_labels(user, canvas.lab_id)
    may_create = create_labels is not False and may_manage_labels(user, canvas.lab_id)
    row = RoiImport(lab_id=canvas.lab_id, canvas=canvas, author=user)
    run = _Import(canvas, user, row)
    features = features_of(document)
    plans = _read(run, features)
    with transaction.atomic():
        created = _assign_labels(run, plans, may_create=may_create)
        plans = [plan for plan in plans if plan.index not in run.items]
        _refuse_moved(run, plans)
        if strict and run.items:
            raise _refusal(_report(run, created), of=len(features))
        row.save(force_insert=True)
    for chunk in _chunks([plan for plan in plans if plan.index not in run.items], CHUNK):
        _write(run, chunk)
    if not row.revisions.exists():
        row.delete()
        return _report(run, created)
    if strict and any(item.status == "refused" for item in run.items.values()):
        roi_import_undo(roi_import=row, user=user)  # somebody else was faster in the meantime
        raise _refusal(_report(run, created), of=len(features))
    return _report(run, created, import_id=row.pk)


def _report(
    run: _Import, created: list[str], *, import_id: uuid.UUID | None = None
) -> ImportReport:
    items = tuple(run.items[i] for i in sorted(run.items))
    return ImportReport(items, tuple(created), import_id)


def _read(run: _Import, raw_features: list[Any]) -> list[_Plan]:
    """Everything that needs no lock: parsing, repairing, frames."""
    plans: list[_Plan] = []
    seen: dict[uuid.UUID, int] = {}
    for index, raw in enumerate(raw_features):
        try:
            feature = feature_read(raw)
            frame = _frame(run, feature.t)
            shape = roi_shape(run.canvas, feature.geometry)
        except FeatureError as error:
            run.refuse(index, str(error))
            continue
        except PortalError as error:
            run.refuse(index, error.message)
            continue
        roi_id = feature.id or _id_by_content(run.canvas, feature, shape)
        if roi_id in seen:
            run.refuse(index, f"the same object as feature {seen[roi_id]}")
            continue
        seen[roi_id] = index
        plans.append(_Plan(index, feature, shape, frame, roi_id))
    return plans


def _frame(run: _Import, t: int) -> FrameRef | None:
    if t not in run.frames:
        is_video = run.canvas.kind == CanvasKind.VIDEO
        index = t if is_video or t else None
        run.frames[t] = frame_resolve(run.canvas, index=index, pts=None)
    return run.frames[t]


def _id_by_content(canvas: Canvas, feature: Feature, shape: RoiShape) -> uuid.UUID:
    """Objects without an id get one that follows from what they are: importing twice adds none."""
    content = (feature.t, feature.name, feature.label, shape.geometry)
    return uuid.uuid5(canvas.pk, repr(content))


def _assign_labels(run: _Import, plans: list[_Plan], *, may_create: bool) -> list[str]:
    if any(plan.feature.label for plan in plans):
        label_set_ensure(lab=run.canvas.lab)  # a new lab's starter labels count as known
    known = {}
    for label in Label.objects.filter(lab_id=run.canvas.lab_id).order_by("-position"):
        known[label.name.lower()] = label
    created: list[str] = []
    for plan in plans:
        name = plan.feature.label
        if not name:
            continue
        if name.lower() not in known and may_create:
            try:
                label = label_create(
                    lab=run.canvas.lab, user=run.user, name=name, color=plan.feature.color
                )
            except PortalError as error:
                run.refuse(plan.index, f"class {name[:80]!r}: {error.message}")
                continue
            known[name.lower()] = label
            created.append(label.name)
        plan.label = known.get(name.lower())
        if plan.label is None:
            run.refuse(plan.index, f"no label {name[:80]!r} in this lab; a manager can add it")
    return created


def _refuse_moved(run: _Import, plans: list[_Plan]) -> None:
    """An ROI stays on its frame. Found before anything is written."""
    for plan, roi in _known(run, plans):
        if roi is not None and roi.frame_index != (plan.frame.index if plan.frame else None):
            reason = f"this ROI lies on frame {roi.frame_index}, and an ROI stays there"
            run.refuse(plan.index, reason)


def _known(run: _Import, plans: list[_Plan]) -> list[tuple[_Plan, Roi | None]]:
    """Each plan with the ROI of this canvas that it names, if there is one."""
    found: dict[uuid.UUID, Roi] = {}
    for chunk in _chunks(plans, 500):
        ids = {one for plan in chunk for one in (plan.roi_id, _derived(run, plan))}
        found |= {roi.pk: roi for roi in Roi.everything.select_for_update().filter(pk__in=ids)}
    pairs: list[tuple[_Plan, Roi | None]] = []
    for plan in plans:
        roi = found.get(plan.roi_id)
        if roi is not None and roi.canvas_id != run.canvas.pk:
            # The same file brought onto a second canvas: its own objects, by a derived id.
            plan.roi_id = _derived(run, plan)
            roi = found.get(plan.roi_id)
        pairs.append((plan, roi))
    return pairs


def _derived(run: _Import, plan: _Plan) -> uuid.UUID:
    return uuid.uuid5(run.canvas.pk, str(plan.roi_id))


def _write(run: _Import, plans: list[_Plan]) -> None:
    """One short transaction; once more where another import wrote the same ids meanwhile."""
    try:
        _write_once(run, plans)
    except IntegrityError:
        _write_once(run, plans)


def _write_once(run: _Import, plans: list[_Plan]) -> None:
    with transaction.atomic():
        new: list[Roi] = []
        for plan, roi in _known(run, plans):
            if roi is None:
                new.append(_prepared(run, plan))
                run.add(plan, "created")
                continue
            roi.canvas = run.canvas
            try:
                with transaction.atomic():
                    run.add(plan, _renew(run, plan, roi))
            except PortalError as error:
                run.refuse(plan.index, error.message)
        rois_insert(rois=new, user=run.user, roi_import=run.row)


def _prepared(run: _Import, plan: _Plan) -> Roi:
    return roi_prepare(
        canvas=run.canvas,
        user=run.user,
        shape=plan.shape,
        frame=plan.frame,
        label=plan.label,
        name=plan.feature.name,
        roi_id=plan.roi_id,
        foreign=plan.feature.foreign,
        kind=plan.feature.kind,
        is_locked=plan.feature.is_locked,
    )


def _renew(run: _Import, plan: _Plan, roi: Roi) -> str:
    status = "unchanged"
    if plan.feature.id is None:
        return status  # recognised by its content: what was edited here since then stays
    if roi.deleted_at is not None:
        roi_restore(roi=roi, user=run.user, roi_import=run.row)
        status = "restored"
    changes: RoiChanges = {
        "geometry": plan.shape.geometry,
        "shape": plan.feature.kind,
        "name": plan.feature.name,
        "label": plan.label,
        "foreign": plan.feature.foreign,
    }
    if plan.feature.is_locked:  # a file never unlocks
        changes["is_locked"] = True
    saved = roi_update(
        roi=roi,
        user=run.user,
        expected_version=roi.version,
        changes=changes,
        roi_import=run.row,
    )
    return "updated" if saved.changed and status == "unchanged" else status


def _refusal(report: ImportReport, *, of: int) -> InvalidInputError:
    refused = [item for item in report.items if item.status == "refused"]
    first = refused[0]
    return InvalidInputError(
        f"Nothing was imported: {len(refused)} of {of} features would be refused;"
        f" the first is feature {first.index}: {first.reason}.",
        code="import-refused",
        details={"refused": [{"index": item.index, "reason": item.reason} for item in refused]},
    )


def _chunks(plans: list[_Plan], size: int) -> list[list[_Plan]]:
    return [plans[i : i + size] for i in range(0, len(plans), size)]
