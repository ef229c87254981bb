"""Pixel size of an image whose file states none, set by a person."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from portal.archive.events import ArchiveEvent
from portal.archive.models import Canvas, CanvasKind, Modality
from portal.archive.rules import require_edit
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.labs.models import User

MIN_MPP, MAX_MPP = 0.01, 1000.0
"""Microns per pixel: from below the finest microscope to a photograph of a tray."""


def canvas_scale_set(
    *, canvas: Canvas, user: User, mpp_x: float | None, mpp_y: float | None = None
) -> Canvas:
    """Set or reset the pixel size of a canvas. Emits ``canvas.scaled``.

    Lengths and areas are computed on request, so they change at once. Earlier embeddings have the
    wrong scale; ``embeddings`` invalidates them on the event.

    Args:
        mpp_x, mpp_y: Microns per pixel; without ``mpp_y`` pixels are square. None resets it.

    Raises:
        ForbiddenError: The user is below annotator in the lab of the canvas.
        InvalidInputError: Outside ``MIN_MPP`` to ``MAX_MPP``, or neither a slide nor a still of
            histology: in endoscopy the scale changes with the distance.
        ConflictError: The file states its pixel size.
    """
    require_edit(user, canvas.lab_id)
    if canvas.kind not in (CanvasKind.SLIDE, CanvasKind.STILL):
        raise InvalidInputError("Only slides and still images have a pixel size.")
    if mpp_x is not None and canvas.modality == Modality.ENDOSCOPY:
        raise InvalidInputError("Images of endoscopy have no pixel size.")
    mpp_y = mpp_x if mpp_x is None or mpp_y is None else mpp_y
    for name, value in (("mpp_x", mpp_x), ("mpp_y", mpp_y)):
        if value is not None and not MIN_MPP <= value <= MAX_MPP:
            raise InvalidInputError(
                f"{name}: {MIN_MPP:g} to {MAX_MPP:g} um per pixel; got {value:g}."
            )
    with transaction.atomic():
        unknown = Q(mpp_x=None, mpp_y=None) | Q(is_scaled_by_hand=True)
        written = Canvas.objects.filter(unknown, pk=canvas.pk).update(
            mpp_x=mpp_x, mpp_y=mpp_y, is_scaled_by_hand=mpp_x is not None
        )
        if not written:
            raise ConflictError("The file itself states its pixel size.", code="scale-of-file")
        event_emit(
            ArchiveEvent.CANVAS_SCALED,
            lab_id=canvas.lab_id,
            payload={
                "canvas_id": str(canvas.pk),
                "case_id": str(canvas.case_id),
                "user_id": str(user.pk),
                "mpp_x": mpp_x,
                "mpp_y": mpp_y,
                "before": canvas.mpp_x,
            },
        )
    canvas.refresh_from_db(fields=["mpp_x", "mpp_y", "is_scaled_by_hand"])
    return canvas
