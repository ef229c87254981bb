"""ROIs in from other tools: every feature is imported or refused with its reason, never dropped.

A document is read as a stream, twice: first its JSON alone, so that one that is cut short or in
another coordinate system changes nothing, then part by part. Memory is bounded by a part.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from django.db import IntegrityError, transaction

from portal.annotations.models import Roi, RoiImport
from portal.annotations.rules import may_manage_labels, require_annotate, require_manage_labels
from portal.annotations.services.classes import Classes
from portal.annotations.services.fields import RoiChanges, changed_fields
from portal.annotations.services.imports import roi_import_undo
from portal.annotations.services.reading import (
    ImportRun,
    Plan,
    document_survey,
    plans_known,
    plans_read,
    source_of,
)
from portal.annotations.services.reports import ImportItem, ImportReport, Tally
from portal.annotations.services.rois import roi_prepare, roi_restore, roi_update, rois_insert
from portal.archive.models import Canvas
from portal.core.errors import InvalidInputError, PortalError
from portal.labs.models import User


@dataclass(frozen=True, slots=True)
class ImportChoices:
    """How a document is imported.

    Attributes:
        create_labels: add classes that the lab's labels lack (None: where the person may);
            otherwise features of unknown classes are refused.
        labels: by lower-case name of a class, the id of its label; None for no label.
        strict: refuse the whole document where one feature has to be refused.
    """

    create_labels: bool | None = None
    labels: Mapping[str, uuid.UUID | None] = field(default_factory=dict)
    strict: bool = False


def roi_import(
    *,
    canvas: Canvas,
    user: User,
    document: object,
    choices: ImportChoices = ImportChoices(),
) -> ImportReport:
    """Bring a GeoJSON document onto a canvas; emits ``roi.saved`` for each ROI.

    Written in many short transactions, so that others save meanwhile, under one ``RoiImport``.
    One that breaks off leaves what was written; importing again completes it.

    A feature whose id is an ROI of this canvas updates (or restores) it; importing the same
    document again changes nothing.

    Args:
        document: parsed, or a ``Source``.

    Raises:
        ForbiddenError, InvalidInputError (``details["refused"]`` lists the reasons).
    """
    may_create = _may_create(canvas, user, choices)
    source = source_of(document)
    if choices.strict:
        found = roi_import_preview(canvas=canvas, user=user, document=source, choices=choices)
        if found.count("refused"):
            raise _refusal(found)
    total, classes = document_survey(source)
    with transaction.atomic():
        decided = Classes(
            classes,
            canvas=canvas,
            user=user,
            chosen=choices.labels,
            may_create=may_create,
            is_preview=False,
        )
        row = RoiImport.objects.create(lab_id=canvas.lab_id, canvas=canvas, author=user)
    run = ImportRun(canvas, user, row, decided, Tally(total))
    for plans in plans_read(run, source):
        _write(run, plans)
    if not row.revisions.exists():
        row.delete()
        return run.tally.report(decided.all)
    if choices.strict and run.tally.counts["refused"]:
        roi_import_undo(roi_import=row, user=user)  # somebody else was faster in the meantime
        raise _refusal(run.tally.report(decided.all))
    return run.tally.report(decided.all, import_id=row.pk)


def roi_import_preview(
    *,
    canvas: Canvas,
    user: User,
    document: object,
    choices: ImportChoices = ImportChoices(),
    told: Callable[[ImportItem], None] | None = None,
) -> ImportReport:
    """What ``roi_import`` would do now; nothing is written.

    Args:
        told: hears of every feature, in the order of the document.
    """
    may_create = _may_create(canvas, user, choices)
    source = source_of(document)
    total, classes = document_survey(source)
    decided = Classes(
        classes,
        canvas=canvas,
        user=user,
        chosen=choices.labels,
        may_create=may_create,
        is_preview=True,
    )
    row = RoiImport(lab_id=canvas.lab_id, canvas=canvas, author=user)
    run = ImportRun(canvas, user, row, decided, Tally(total, told))
    for plans in plans_read(run, source):
        for plan, roi in plans_known(run, plans, lock=False):
            _foresee(run, plan, roi)
    return run.tally.report(decided.all, is_preview=True)


def _may_create(canvas: Canvas, user: User, choices: ImportChoices) -> bool:
    require_annotate(user, canvas.lab_id)
    if choices.create_labels:
        require_manage_labels(user, canvas.lab_id)
    return choices.create_labels is not False and may_manage_labels(user, canvas.lab_id)


def _write(run: ImportRun, plans: list[Plan]) -> None:
    """One short transaction; once more where another import wrote the same ids meanwhile."""
    try:
        written = _write_once(run, plans)
    except IntegrityError:
        written = _write_once(run, plans)
    for plan, status, reason in written:
        if reason:
            run.refuse(plan.index, reason)
        else:
            run.add(plan, status)


def _write_once(run: ImportRun, plans: list[Plan]) -> list[tuple[Plan, str, str]]:
    written: list[tuple[Plan, str, str]] = []
    with transaction.atomic():
        new: list[Roi] = []
        for plan, roi in plans_known(run, plans):
            if roi is None:
                new.append(_prepared(run, plan))
                written.append((plan, "created", ""))
                continue
            try:
                with transaction.atomic():
                    _refuse_moved(plan, roi)
                    written.append((plan, _renew(run, plan, roi), ""))
            except PortalError as error:
                written.append((plan, "refused", error.message))
        rois_insert(rois=new, user=run.user, roi_import=run.row)
    return written


def _refuse_moved(plan: Plan, roi: Roi) -> None:
    """An ROI stays on its frame."""
    if roi.frame_index != (plan.frame.index if plan.frame else None):
        raise InvalidInputError(f"this ROI lies on frame {roi.frame_index}, and an ROI stays there")


def _foresee(run: ImportRun, plan: Plan, roi: Roi | None) -> None:
    """What ``_write_once`` would do."""
    if roi is None:
        run.add(plan, "created")
        return
    try:
        _refuse_moved(plan, roi)
        if plan.feature.id is None:
            run.add(plan, "unchanged")
            return
        fields, _ = changed_fields(roi, _changes(plan))
    except PortalError as error:
        run.refuse(plan.index, error.message)
        return
    run.add(plan, "restored" if roi.deleted_at else "updated" if fields else "unchanged")


def _prepared(run: ImportRun, plan: Plan) -> Roi:
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


def _renew(run: ImportRun, plan: Plan, roi: Roi) -> str:
    status = "unchanged"
    if plan.feature.id is None:
        return status  # recognised by its content: what was edited here since then stays
    if roi.deleted_at is not None:
        roi_restore(roi=roi, user=run.user, roi_import=run.row)
        status = "restored"
    saved = roi_update(
        roi=roi,
        user=run.user,
        expected_version=roi.version,
        changes=_changes(plan),
        roi_import=run.row,
    )
    return "updated" if saved.changed and status == "unchanged" else status


def _changes(plan: Plan) -> RoiChanges:
    changes: RoiChanges = {
        "geometry": plan.shape.geometry,
        "shape": plan.feature.kind,
        "name": plan.feature.name,
        "label": plan.label,
        "foreign": plan.feature.foreign,
    }
    if plan.feature.is_locked:  # a file never unlocks
        changes["is_locked"] = True
    return changes


def _refusal(report: ImportReport) -> InvalidInputError:
    refused = [item for item in report.items if item.status == "refused"]
    first = refused[0]
    return InvalidInputError(
        f"Nothing was imported: {report.count('refused')} of {report.total} features would be"
        f" refused; the first is feature {first.index}: {first.reason}.",
        code="import-refused",
        details={"refused": [{"index": item.index, "reason": item.reason} for item in refused]},
    )
