"""Modality of an image, and of all images of a case, as set by a person."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import OuterRef, Subquery, Value
from django.db.models.functions import Coalesce, Now

from portal.archive.events import ArchiveEvent
from portal.archive.models import Canvas, Case, Modality
from portal.archive.rules import require_edit
from portal.core.errors import InvalidInputError, NotFoundError
from portal.core.events import event_emit
from portal.labs.models import User


def canvas_modality_set(*, canvas: Canvas, user: User, modality: str) -> Canvas:
    """Set the modality of an image. Emits ``canvas.modality_set`` if it changes.

    Earlier embeddings are by the encoder of the other modality: ``embeddings`` replaces them on the
    event.

    Raises:
        ForbiddenError: The user is below annotator in the lab of the canvas.
        InvalidInputError: Not one of ``Modality``.
        NotFoundError: The canvas was deleted in the meantime.
    """
    require_edit(user, canvas.lab_id)
    _check(modality)
    with transaction.atomic():
        Case.objects.select_for_update().filter(pk=canvas.case_id).first()  # before its canvases
        locked = Canvas.objects.select_for_update().filter(pk=canvas.pk).first()
        if locked is None:
            raise NotFoundError("No such image.")
        _set(locked, user, modality, is_of_case=False)
        case_modality_follow(case_id=canvas.case_id)
    canvas.modality, canvas.is_modality_by_hand = locked.modality, locked.is_modality_by_hand
    return canvas


def case_modality_set(*, case: Case, user: User, modality: str) -> Case:
    """Set the modality of a case and of all its images. Emits ``case.modality_set`` if it changes.

    Emits ``canvas.modality_set`` for each image that changes. Stills that arrive later take the
    modality of the case.

    Raises:
        ForbiddenError: The user is below annotator in the lab of the case.
        InvalidInputError: Not one of ``Modality``.
        NotFoundError: The case was deleted in the meantime.
    """
    require_edit(user, case.lab_id)
    _check(modality)
    with transaction.atomic():
        locked = Case.objects.select_for_update().filter(pk=case.pk).first()
        if locked is None:
            raise NotFoundError("No such case.")
        rows = Canvas.objects.select_for_update().filter(case=case).order_by("pk")
        changed = [_set(canvas, user, modality, is_of_case=True) for canvas in rows]
        before = locked.modality
        Case.objects.filter(pk=case.pk).update(
            modality=modality, is_modality_by_hand=True, updated_at=Now()
        )
        if before != modality or any(changed):
            event_emit(
                ArchiveEvent.CASE_MODALITY_SET,
                lab_id=case.lab_id,
                payload={
                    "case_id": str(case.pk),
                    "user_id": str(user.pk),
                    "modality": modality,
                    "before": before,
                },
            )
    case.refresh_from_db(fields=["modality", "is_modality_by_hand", "updated_at"])
    return case


def case_modality_follow(*, case_id: uuid.UUID) -> None:
    """Give a case the modality of its first image, unless a person set it."""
    first = Canvas.objects.filter(case=OuterRef("pk")).order_by("created_at", "id")
    Case.all_objects.filter(pk=case_id, is_modality_by_hand=False).update(
        modality=Coalesce(Subquery(first.values("modality")[:1]), Value(""))
    )


def _check(modality: str) -> None:
    if modality not in Modality.values:
        raise InvalidInputError(
            f"modality: expected {' or '.join(Modality.values)}; got {modality[:40]!r}."
        )


def _set(canvas: Canvas, user: User, modality: str, *, is_of_case: bool) -> bool:
    before = canvas.modality
    canvas.modality, canvas.is_modality_by_hand = modality, True
    canvas.save(update_fields=["modality", "is_modality_by_hand"])
    if before == modality:
        return False
    event_emit(
        ArchiveEvent.MODALITY_SET,
        lab_id=canvas.lab_id,
        payload={
            "canvas_id": str(canvas.pk),
            "case_id": str(canvas.case_id),
            "user_id": str(user.pk),
            "modality": modality,
            "before": before,
            "is_of_case": is_of_case,
        },
    )
    return True
