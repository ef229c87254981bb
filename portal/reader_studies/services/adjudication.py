"""Adjudication: a third person chooses a reader's region, a merged one, a new one, or none."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence

import shapely
from django.db import IntegrityError, transaction
from shapely.geometry.base import BaseGeometry

from portal.annotations.models import Label, Roi
from portal.annotations.selectors.rois import roi_get
from portal.annotations.services.rois import roi_create, roi_delete
from portal.archive.models import Canvas
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError
from portal.labs.models import User
from portal.reader_studies.agreement import Finding, merged
from portal.reader_studies.models import Choice, Decision, Study
from portal.reader_studies.rules import require_adjudicate
from portal.reader_studies.selectors.results import image_result, label_key
from portal.reader_studies.services.notifications import study_event_emit

CONSENSUS = "Consensus"


def findings_decide(
    *,
    study: Study,
    canvas: Canvas,
    user: User,
    findings: Sequence[uuid.UUID],
    choice: str,
    reader: uuid.UUID | None = None,
    label: Label | None = None,
    roi_id: uuid.UUID | None = None,
) -> list[Decision]:
    """Decide findings of an image; each gives one consensus region, or none. One transaction.

    Earlier decisions are replaced. Emits ``study.decided``.

    Args:
        reader: For ``Choice.READER``: author of the chosen region.
        label: For a merged region if the readers chose several.
        roi_id: For ``Choice.DRAWN``: a region of this image that the user drew.
    Raises:
        ForbiddenError: not a reviewer, or a reader of the study.
        InvalidInputError: the arguments do not fit the choice.
        NotFoundError: no such finding of this image.
        ConflictError: as ``image_result``.
    """
    require_adjudicate(user, study)
    result = image_result(study, canvas)
    findings_by_id = {finding_id.id: finding_id for finding_id in result.findings}
    if missing := [finding_id for finding_id in findings if finding_id not in findings_by_id]:
        raise NotFoundError(f"There is no finding {missing[0]} on this image.")
    labels = {
        label_key(finding_id): finding_id
        for finding_id in Label.objects.filter(lab_id=study.lab_id)
    }
    decided = []
    with transaction.atomic():
        for finding_id in findings:
            finding = findings_by_id[finding_id]
            decision_undo(study=study, user=user, finding=finding_id, is_again=True)
            if choice == Choice.NOTHING:
                roi = None
            elif choice == Choice.DRAWN:
                roi = _drawn_roi(user, canvas, roi_id)
            else:
                place = result.readers.index(reader) if reader in result.readers else None
                outline, name, frame = _chosen_rois(
                    finding, choice, place, readers=len(result.readers), label=label
                )
                roi = roi_create(
                    canvas=canvas,
                    user=user,
                    geometry=json.loads(shapely.to_geojson(outline)),
                    label=labels.get(name),
                    name=CONSENSUS,
                    frame_index=frame,
                    foreign={"metadata": {"study": study.name, "finding": str(finding_id)}},
                ).roi
            row = Decision(lab_id=study.lab_id, study=study, canvas=canvas, finding=finding_id)
            row.choice, row.roi, row.decided_by = choice, roi, user
            decided.append(_write_roi(row))
        study_event_emit(
            "decided", study, canvas_id=str(canvas.pk), choice=choice, count=len(findings)
        )
    return decided


def decision_undo(*, study: Study, user: User, finding: uuid.UUID, is_again: bool = False) -> None:
    """Undo a decision and delete its consensus region, unless the region was drawn by hand.

    Raises:
        ForbiddenError.
        NotFoundError: there is no decision, unless ``is_again``.
    """
    require_adjudicate(user, study)
    decision = Decision.objects.select_related("roi").filter(study=study, finding=finding).first()
    if decision is None:
        if is_again:
            return
        raise NotFoundError("Nothing has been decided about this finding.")
    with transaction.atomic():
        roi = decision.roi
        if roi is not None and decision.choice != Choice.DRAWN and roi.deleted_at is None:
            roi_delete(roi=roi, user=user, expected_version=roi.version, despite_lock=True)
        canvas_id = decision.canvas_id
        decision.delete()
        if not is_again:
            study_event_emit("decided", study, canvas_id=str(canvas_id), choice="", count=1)


def _chosen_rois(
    finding: Finding, choice: str, place: int | None, *, readers: int, label: Label | None
) -> tuple[BaseGeometry, str, int | None]:
    """Outline, key of the label, and frame."""
    regions = [region for _, region in finding.regions]
    if choice == Choice.READER:
        chosen = [region for k, region in finding.regions if k == place]
        if not chosen:
            raise InvalidInputError("reader: this reader drew nothing here.")
        return chosen[0].outline, chosen[0].label, chosen[0].frame
    names = {region.label for region in regions}
    if label is None and len(names) > 1:
        raise InvalidInputError("label: the readers chose different labels; name one.")
    outline = merged([region.outline for region in regions], readers=readers)
    if outline.is_empty:
        raise InvalidInputError(
            "Fewer than half of the readers drew here, so there is nothing to merge."
        )
    return outline, label_key(label) if label else names.pop(), regions[0].frame


def _drawn_roi(user: User, canvas: Canvas, roi_id: uuid.UUID | None) -> Roi:
    if roi_id is None:
        raise InvalidInputError("roi: name the region that you drew.")
    roi = roi_get(user, roi_id, with_shared=False)
    if roi.canvas_id != canvas.pk or roi.created_by_id != user.pk or roi.deleted_at is not None:
        raise InvalidInputError("roi: expected a region of this image that you drew yourself.")
    return roi


def _write_roi(decision: Decision) -> Decision:
    try:
        with transaction.atomic():
            decision.save(force_insert=True)
    except IntegrityError as error:
        raise ConflictError("Somebody else decided this just now.", code="decided") from error
    return decision
