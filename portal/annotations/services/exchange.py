"""Import ROIs from other tools: every feature is imported or refused with a reason.

A document is read as a stream, twice: first only its JSON, so that a truncated one or one in
another coordinate system changes nothing, then part by part. Memory is bounded by a part.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import IntegrityError, transaction

from portal.annotations.models import ImportStage, Roi, RoiImport, VideoEvent
from portal.annotations.qupath import describe_feature
from portal.annotations.rules import may_manage_labels, require_annotate, require_manage_labels
from portal.annotations.services.classes import Classes
from portal.annotations.services.fields import RoiChanges, changed_fields
from portal.annotations.services.imports import import_fields_update, import_undo_unasked
from portal.annotations.services.reading import (
    AT_ONCE,
    AnyPlan,
    EventPlan,
    ImportRun,
    ImportWork,
    Plan,
    Source,
    Survey,
    document_survey,
    few_collections,
    format_of,
    plans_known,
    plans_read,
    source_of,
)
from portal.annotations.services.reports import (
    ImportReport,
    ImportTally,
    classes_from_json,
)
from portal.annotations.services.rois import roi_prepare, roi_restore, roi_update, rois_insert
from portal.annotations.services.video_events import (
    changed_event_fields,
    video_event_import,
    video_event_restore,
    video_event_update,
)
from portal.archive.models import Canvas
from portal.core.errors import InvalidInputError, PortalError
from portal.labs.models import User

HEARTBEAT_EVERY_S = 10.0  # heartbeat while nothing is written; see ``imports.SILENT``


@dataclass(frozen=True, slots=True)
class ImportChoices:
    """Options of an import.

    Attributes:
        create_labels: Create labels for unknown classes (None: if the user may);
            otherwise their features are refused.
        labels: Label id by ``name_key`` of a class; None for no label.
        strict: Refuse the document if any feature is refused.
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
    """Import a document into a canvas; emits ``roi.saved`` and ``video_event.saved`` for each.

    Written in many short transactions, so that others save in the meantime, under one
    ``RoiImport``. One that breaks off is undone: at once, or by a chore if its process was killed.

    A feature whose id is an ROI or event of this canvas updates (or restores) it; importing the
    same document again changes nothing.

    Args:
        document: parsed, or a ``Source``.

    Raises:
        ForbiddenError, InvalidInputError (``details["refused"]`` lists the reasons).
    """
    _may_create(canvas, user, choices)
    source = source_of(document)
    if choices.strict:
        preview = roi_import_preview(canvas=canvas, user=user, document=source, choices=choices)
        if preview.count("refused"):
            raise _refusal(preview)
    row = RoiImport(lab_id=canvas.lab_id, canvas=canvas, author=user, format=format_of(source))
    row.stage = ImportStage.IMPORTING
    report = _run_whole(row, source, choices)
    row.stage = ImportStage.IMPORTED
    import_fields_update(row, stage=row.stage)
    if not row.revisions.exists() and not row.event_revisions.exists():
        row.delete()
        return replace(report, import_id=None)
    if choices.strict and report.count("refused"):
        import_undo_unasked(row)  # refused because of a concurrent change
        raise _refusal(report)
    return report


def _run_whole(row: RoiImport, source: Source, choices: ImportChoices) -> ImportReport:
    """Read the document in full; undo everything if it breaks off."""
    heartbeat_s = time.monotonic()

    def progress(run: ImportRun) -> None:
        nonlocal heartbeat_s
        if time.monotonic() - heartbeat_s > HEARTBEAT_EVERY_S:
            import_fields_update(row, done=run.read)
            heartbeat_s = time.monotonic()

    work = ImportWork(
        on_stored=lambda run: import_fields_update(row, done=run.read), progress=progress
    )
    try:
        return roi_import_run(row=row, source=source, choices=choices, work=work)
    except Exception:
        if not row._state.adding:
            import_undo_unasked(row)
        raise


@few_collections()
def roi_import_run(
    *, row: RoiImport, source: Source, choices: ImportChoices, work: ImportWork = AT_ONCE
) -> ImportReport:
    """Carry out an import, or resume one from ``row.report`` and ``work.done``.

    The row is written if it is new. Raises as ``roi_import``.
    """
    canvas, user = row.canvas, import_author(row)
    may_create = _may_create(canvas, user, choices)
    survey = document_survey(source, work)
    tally = _tally(survey, source, work)
    with work.part():
        decided = Classes(
            survey.classes,
            canvas=canvas,
            user=user,
            chosen=choices.labels,
            may_create=may_create,
            is_preview=False,
        )
        if work.done and row.report:
            tally.restore(row.report)
            decided.all = classes_from_json(row.report)
        if row._state.adding:
            row.save(force_insert=True)
    run = ImportRun(canvas, user, row, decided, tally, work)
    for plans in plans_read(run, source):
        _write(run, plans)
    return tally.report(decided.all, import_id=row.pk)


def import_author(row: RoiImport) -> User:
    """User who started the import.

    Raises:
        InvalidInputError: the account no longer exists.
    """
    if row.author is None:
        raise InvalidInputError("The person who sent this document no longer has an account.")
    return row.author


@few_collections()
def roi_import_preview(
    *,
    canvas: Canvas,
    user: User,
    document: object,
    choices: ImportChoices = ImportChoices(),
    work: ImportWork = AT_ONCE,
    stored_report: Mapping[str, Any] | None = None,
) -> ImportReport:
    """Report that ``roi_import`` would give now; nothing is written.

    Args:
        stored_report: Report of the first ``work.done`` features, to continue from.
    """
    may_create = _may_create(canvas, user, choices)
    source = source_of(document)
    survey = document_survey(source, work)
    decided = Classes(
        survey.classes,
        canvas=canvas,
        user=user,
        chosen=choices.labels,
        may_create=may_create,
        is_preview=True,
    )
    row = RoiImport(lab_id=canvas.lab_id, canvas=canvas, author=user)
    tally = _tally(survey, source, work)
    run = ImportRun(canvas, user, row, decided, tally, work)
    if work.done and stored_report:
        tally.restore(stored_report)
        run.outlines = stored_report["outlines"]
    for plans in plans_read(run, source):
        for plan, roi in plans_known(run, _plans_of(plans, Plan), Roi, lock=False):
            _foresee(run, plan, roi)
        for event_plan, event in plans_known(
            run, _plans_of(plans, EventPlan), VideoEvent, lock=False
        ):
            fields = changed_event_fields(event, event_plan.changes) if event else {}
            run.add(event_plan, _status(event_plan, event, fields))
    return preview_report(run)


def _tally(survey: Survey, source: Source, work: ImportWork) -> ImportTally:
    return ImportTally(
        survey.total, work.on_item, format=format_of(source), image_decided=survey.decided
    )


def preview_report(run: ImportRun) -> ImportReport:
    """The report of a preview, so far."""
    report = run.tally.report(run.classes.all, is_preview=True)
    return replace(report, outlines=tuple(run.outlines))


def _may_create(canvas: Canvas, user: User, choices: ImportChoices) -> bool:
    require_annotate(user, canvas.lab_id)
    if choices.create_labels:
        require_manage_labels(user, canvas.lab_id)
    return choices.create_labels is not False and may_manage_labels(user, canvas.lab_id)


def _plans_of(plans: list[Plan | EventPlan], kind: type[AnyPlan]) -> list[AnyPlan]:
    return [plan for plan in plans if isinstance(plan, kind)]


def _write(run: ImportRun, plans: list[Plan | EventPlan]) -> None:
    """Write in one short transaction; retry if another import wrote the same ids concurrently."""
    try:
        _write_once(run, plans)
    except IntegrityError:
        _write_once(run, plans)


def _write_once(run: ImportRun, plans: list[Plan | EventPlan]) -> None:
    written: list[tuple[Plan | EventPlan, str, str]] = []
    with run.work.part():
        new: list[Roi] = []
        for plan, roi in plans_known(run, _plans_of(plans, Plan), Roi):
            if roi is None:
                new.append(_prepare_roi(run, plan))
                written.append((plan, "created", ""))
                continue
            try:
                with transaction.atomic():
                    _refuse_moved(plan, roi)
                    written.append((plan, _renew(run, plan, roi), ""))
            except PortalError as error:
                written.append((plan, "refused", error.message))
        rois_insert(rois=new, user=run.user, roi_import=run.row)
        for event_plan, event in plans_known(run, _plans_of(plans, EventPlan), VideoEvent):
            written.append((event_plan, _write_event(run, event_plan, event), ""))
        for outcome, status, reason in written:
            if reason:
                run.refuse(outcome.index, reason, describe_feature(outcome.feature))
            else:
                run.add(outcome, status)
        run.part_ends()
        if run.work.on_stored:
            run.work.on_stored(run)


def _refuse_moved(plan: Plan, roi: Roi) -> None:
    """Raise an error if the document has the ROI on another frame than the database."""
    if roi.frame_index != (plan.frame.index if plan.frame else None):
        raise InvalidInputError(
            f"this region is on frame {roi.frame_index} and cannot move to another frame"
        )


def _foresee(run: ImportRun, plan: Plan, roi: Roi | None) -> None:
    """Record the result that ``_write_once`` would have."""
    if roi is None:
        run.add(plan, "created")
        run.draw(plan, "created")
        return
    try:
        _refuse_moved(plan, roi)
        is_its_own = plan.feature.id is not None
        fields = changed_fields(roi, _changes(plan))[0] if is_its_own else {}
    except PortalError as error:
        run.refuse(plan.index, error.message, describe_feature(plan.feature))
        return
    status = _status(plan, roi, fields)
    run.add(plan, status)
    if is_its_own or status == "restored":
        run.draw(plan, status)


def _status(
    plan: Plan | EventPlan, row: Roi | VideoEvent | None, fields: Mapping[str, object]
) -> str:
    """Result for the row that a plan names; without an id of its own it changes nothing."""
    if row is None:
        return "created"
    if row.deleted_at:
        return "restored"
    return "updated" if fields and plan.feature.id else "unchanged"


def _write_event(run: ImportRun, plan: EventPlan, event: VideoEvent | None) -> str:
    fields = changed_event_fields(event, plan.changes) if event else {}
    status = _status(plan, event, fields)
    if event is None:
        plan.event.pk = plan.row_id
        video_event_import(event=plan.event, roi_import=run.row, user=run.user)
        return status
    if status == "restored":
        video_event_restore(event=event, user=run.user, roi_import=run.row)
    if plan.feature.id:
        video_event_update(
            event=event,
            user=run.user,
            expected_version=event.version,
            changes=plan.changes,
            roi_import=run.row,
        )
    return status


def _prepare_roi(run: ImportRun, plan: Plan) -> Roi:
    return roi_prepare(
        canvas=run.canvas,
        user=run.user,
        shape=plan.shape,
        frame=plan.frame,
        label=plan.label,
        name=plan.feature.name,
        description=plan.feature.description or "",
        properties=plan.feature.properties,
        roi_id=plan.row_id,
        foreign=plan.feature.foreign,
        kind=plan.feature.kind,
        is_locked=plan.feature.is_locked,
        track=plan.track,
    )


def _renew(run: ImportRun, plan: Plan, roi: Roi) -> str:
    status = "unchanged"
    if roi.deleted_at is not None:
        roi_restore(roi=roi, user=run.user, roi_import=run.row)
        status = "restored"
    if plan.feature.id is None:
        return status  # matched by content, so later edits are kept
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
    if plan.feature.description is not None:
        changes["description"] = plan.feature.description
    if plan.feature.properties is not None:
        changes["properties"] = plan.feature.properties
    if plan.track:  # formats without tracks must not remove one
        changes["track"] = list(plan.track)
    if plan.feature.is_locked:  # a file never unlocks
        changes["is_locked"] = True
    return changes


def _refusal(report: ImportReport) -> InvalidInputError:
    refused = [item for item in report.items if item.status == "refused"]
    first = refused[0]
    return InvalidInputError(
        f"Nothing was imported: {report.count('refused')} of {report.total} features would be"
        f" refused; the first is feature {first.index + 1}: {first.message.rstrip('.')}.",
        code="import-refused",
        details={"refused": [{"index": item.index, "reason": item.message} for item in refused]},
    )
