"""The pixel size of an image whose file names none, as a person knows it."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from portal.archive.models import Canvas, CanvasKind
from portal.archive.rules import require_edit
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.labs.models import User

MPP_LEAST, MPP_MOST = 0.01, 1000.0
"""Microns per pixel: from below the finest microscope to a photograph of a tray."""


def canvas_scale_set(
    *, canvas: Canvas, user: User, mpp_x: float | None, mpp_y: float | None = None
) -> Canvas:
    """Say how large a pixel is, or take back what was said. Emits ``canvas.scaled``.

    Lengths and areas are computed from it when they are asked for, so they follow at once.
    Embeddings that were made before are of the wrong scale: ``retrieval`` hears of it.

    Args:
        mpp_x, mpp_y: microns per pixel; without ``mpp_y`` pixels are square. None takes it back.

    Raises:
        ForbiddenError: below annotator in the lab of the canvas.
        InvalidInputError: not from ``MPP_LEAST`` to ``MPP_MOST``, or neither slide nor still: in a
            video the distance, and with it the scale, changes from frame to frame.
        ConflictError: the file names its pixel size itself.
    """
    require_edit(user, canvas.lab_id)
    if canvas.kind not in (CanvasKind.SLIDE, CanvasKind.STILL):
        raise InvalidInputError("Only slides and still images have a pixel size.")
    mpp_y = mpp_x if mpp_x is None or mpp_y is None else mpp_y
    for name, value in (("mpp_x", mpp_x), ("mpp_y", mpp_y)):
        if value is not None and not MPP_LEAST <= value <= MPP_MOST:
            raise InvalidInputError(
                f"{name}: {MPP_LEAST:g} to {MPP_MOST:g} um per pixel; got {value:g}."
            )
    with transaction.atomic():
        unknown = Q(mpp_x=None, mpp_y=None) | Q(is_scaled_by_hand=True)
        written = Canvas.objects.filter(unknown, pk=canvas.pk).update(
            mpp_x=mpp_x, mpp_y=mpp_y, is_scaled_by_hand=mpp_x is not None
        )
        if not written:
            raise ConflictError("The file itself states its pixel size.", code="scale-of-file")
        event_emit(
            "canvas.scaled",
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
