"""ROIs in from other tools: every feature is imported or refused with its reason, never dropped."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from portal.annotations.geometry import RoiShape
from portal.annotations.models import Label, Roi
from portal.annotations.qupath import Feature, FeatureError, feature_read, features_of
from portal.annotations.rules import may_manage_labels, require_annotate, require_manage_labels
from portal.annotations.selectors import FrameRef, frame_resolve
from portal.annotations.services.labels import label_create, label_set_ensure
from portal.annotations.services.rois import (
    roi_insert,
    roi_prepare,
    roi_restore,
    roi_shape,
    roi_update,
)
from portal.archive.models import Canvas, CanvasKind
from portal.core.errors import InvalidInputError, PortalError
from portal.labs.models import User


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
    """What became of a document; every feature is accounted for."""

    items: tuple[ImportItem, ...]
    labels_created: tuple[str, ...] = ()

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
    """Bring a GeoJSON document onto a canvas, all in one transaction; emits ``roi.saved`` for each.

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
    run = _Import(canvas, user)
    plans = _read(run, features_of(document))
    with transaction.atomic():
        created = _assign_labels(run, plans, may_create=may_create)
        plans = [plan for plan in plans if plan.index not in run.items]
        _write(run, plans)
        report = ImportReport(tuple(run.items[i] for i in sorted(run.items)), tuple(created))
        if strict and report.count("refused"):
            raise _refusal(report)
    return report


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


def _write(run: _Import, plans: list[_Plan]) -> None:
    wanted = {plan.roi_id for plan in plans}
    known = {
        roi.pk: roi
        for chunk in _chunks(sorted(wanted))
        for roi in Roi.objects.select_for_update().filter(pk__in=chunk)
    }
    for plan in plans:
        roi = known.get(plan.roi_id)
        if roi is not None and roi.canvas_id != run.canvas.pk:
            # The same file brought onto a second canvas: its own objects, by a derived id.
            plan.roi_id = uuid.uuid5(run.canvas.pk, str(plan.roi_id))
            roi = Roi.objects.filter(pk=plan.roi_id, canvas=run.canvas).first()
        if roi is None:
            run.add(plan, _create(run, plan))
        elif roi.frame_index != (plan.frame.index if plan.frame else None):
            run.refuse(
                plan.index, f"this ROI lies on frame {roi.frame_index}, and an ROI stays there"
            )
        else:
            roi.canvas = run.canvas
            run.add(plan, _renew(run, plan, roi))


def _create(run: _Import, plan: _Plan) -> str:
    roi = roi_prepare(
        canvas=run.canvas,
        user=run.user,
        shape=plan.shape,
        frame=plan.frame,
        label=plan.label,
        name=plan.feature.name,
        roi_id=plan.roi_id,
        foreign=plan.feature.foreign,
    )
    roi_insert(roi=roi, user=run.user)
    return "created"


def _renew(run: _Import, plan: _Plan, roi: Roi) -> str:
    status = "unchanged"
    if plan.feature.id is None:
        return status  # recognised by its content: what was edited here since then stays
    if roi.deleted_at is not None:
        roi_restore(roi=roi, user=run.user)
        status = "restored"
    saved = roi_update(
        roi=roi,
        user=run.user,
        expected_version=roi.version,
        changes={
            "geometry": plan.shape.geometry,
            "name": plan.feature.name,
            "label": plan.label,
            "foreign": plan.feature.foreign,
        },
    )
    return "updated" if saved.changed and status == "unchanged" else status


def _refusal(report: ImportReport) -> InvalidInputError:
    refused = [item for item in report.items if item.status == "refused"]
    first = refused[0]
    return InvalidInputError(
        f"Nothing was imported: {len(refused)} of {len(report.items)} features would be refused;"
        f" the first is feature {first.index}: {first.reason}.",
        code="import-refused",
        details={"refused": [{"index": item.index, "reason": item.reason} for item in refused]},
    )


def _chunks(ids: list[uuid.UUID], size: int = 500) -> list[list[uuid.UUID]]:
    return [ids[i : i + size] for i in range(0, len(ids), size)]
