"""The display range of an image of more than 8 bits, as a person sets it."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from math import isfinite

from django.db import transaction

from ml.types import DisplayRange
from portal.archive.events import ArchiveEvent
from portal.archive.models import Canvas
from portal.archive.rules import require_edit
from portal.archive.storage import files as storage
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.labs.models import User

MAX_SHOWN_VALUE = 1e38
"""Within what stored numbers of 32 bits can be."""


def canvas_display_range_set(
    *, canvas: Canvas, user: User, display_range: DisplayRange | None
) -> Canvas:
    """Set which stored values are shown as black and white. Emits ``canvas.display_range_set``.

    Tiles, regions and thumbnails follow at once. Embeddings that were made before are of another
    picture: ``embeddings`` makes them again.

    Args:
        display_range: None goes back to the range that was found in the file.

    Raises:
        ForbiddenError: below annotator in the lab of the canvas.
        InvalidInputError: values that are not finite, or equal.
        ConflictError: the image has 8 bits, which are shown as they are.
    """
    require_edit(user, canvas.lab_id)
    if display_range is not None:
        check_display_range(display_range)
    with transaction.atomic():
        locked = Canvas.objects.select_for_update().filter(pk=canvas.pk).first()
        if locked is None or locked.file_display_range is None:
            raise ConflictError(
                "This image has 8 bits: its values are shown as they are stored.",
                code="no-display-range",
            )
        before = locked.display_range
        new_range = locked.file_display_range if display_range is None else asdict(display_range)
        canvas.display_range, canvas.file_display_range = new_range, locked.file_display_range
        if new_range != before:
            Canvas.objects.filter(pk=canvas.pk).update(display_range=new_range)
            # tiles and thumbnails of regions and queries are rendered again on request
            transaction.on_commit(partial(storage.folder_drop, storage.cache_folder(canvas.pk)))
            event_emit(
                ArchiveEvent.DISPLAY_RANGE_SET,
                lab_id=canvas.lab_id,
                payload={
                    "canvas_id": str(canvas.pk),
                    "case_id": str(canvas.case_id),
                    "user_id": str(user.pk),
                    **new_range,
                    "before": before,
                },
            )
    return canvas


def check_display_range(display_range: DisplayRange) -> None:
    """Raise ``InvalidInputError`` unless the values are finite and differ."""
    for name, value in asdict(display_range).items():
        if not (isfinite(value) and abs(value) <= MAX_SHOWN_VALUE):
            raise InvalidInputError(f"{name}: expected a number; got {value!r}.")
    if display_range.low == display_range.high:
        raise InvalidInputError(
            f"low and high: expected two different values; got {display_range.low:g} twice."
        )
