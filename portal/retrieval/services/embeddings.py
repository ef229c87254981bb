"""Writes of embeddings: a vector of an outline, or why it has none; masked when it changes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from ml.errors import EmptyRegionError, MlError
from ml.types import ArrayF32
from portal.annotations.models import Roi, RoiRevision
from portal.archive.models import Canvas
from portal.core.events import event_emit
from portal.retrieval import selectors
from portal.retrieval.indexes import Scope
from portal.retrieval.models import (
    CanvasStain,
    Embedding,
    Encoder,
    TissueSample,
    Unembeddable,
)
from portal.retrieval.selectors import NO_TISSUE
from portal.retrieval.services.indexes import index_build_if_due
from portal.retrieval.services.learning.own import archive_embed_submit, own_write

OwnVectors = Mapping[uuid.UUID, tuple[ArrayF32, int]]
"""By the key of a lab's own encoder: a vector and the number of its patches."""


def embeddings_supersede(*, roi_ids: Sequence[uuid.UUID]) -> int:
    """Take the ROIs' vectors out of every search, now. Returns how many there were."""
    Unembeddable.objects.filter(roi_id__in=roi_ids).delete()
    current = Embedding.objects.filter(roi_id__in=roi_ids, superseded_at__isnull=True)
    return int(current.update(superseded_at=Now()))


def embeddings_forget(*, canvas_id: uuid.UUID) -> int:
    """Drop all that was computed of a canvas at another scale or range.

    Returns how many vectors there were.
    Rows are deleted, not superseded: no version of its ROIs may get such a vector back.
    """
    Unembeddable.objects.filter(roi__canvas=canvas_id).delete()
    CanvasStain.objects.filter(canvas=canvas_id).delete()
    TissueSample.everything.filter(canvas=canvas_id).delete()
    deleted, _ = Embedding.everything.filter(canvas=canvas_id).delete()
    return deleted


def is_picture_of(canvas: Canvas, *, lock: bool) -> bool:
    """Return whether pixel size and display range are unchanged since this canvas was read.

    Args:
        lock: the row until the transaction ends. Not in a part of the canvas' bulk job, whose own
            row does that: ``canvas_changed`` takes both, the canvas first.
    """
    rows = Canvas.everything.select_for_update() if lock else Canvas.everything.all()
    known = rows.filter(pk=canvas.pk, mpp_x=canvas.mpp_x, mpp_y=canvas.mpp_y).first()
    return known is not None and known.shown_range == canvas.shown_range


def embedding_carry_over(roi: Roi, encoder: Encoder) -> bool:
    """Give the ROI a copy of its newest vector by an encoder, if that is of its present outline."""
    newest = Embedding.objects.filter(roi=roi, encoder=encoder).order_by("-pk").first()
    if newest is None:
        return False
    seen = RoiRevision.objects.filter(roi=roi, version=newest.roi_version).first()
    if seen is None or seen.geometry != roi.geometry:
        return False
    _write_embedding(
        roi,
        encoder,
        {},
        vector=bytes(newest.vector),
        patch_count=newest.patch_count,
        seconds=newest.seconds,
    )
    return True


def embeddings_carry_over(rois: Sequence[Roi], *, encoder: Encoder) -> list[Roi]:
    """Give back vectors of present outlines; returns the ROIs that have none to be given."""
    rows = Embedding.objects.filter(encoder=encoder, roi__in=[roi.pk for roi in rois])
    seen = set(rows.order_by().values_list("roi_id", flat=True))
    return [roi for roi in rois if roi.pk not in seen or not embedding_carry_over(roi, encoder)]


def stain_save(*, canvas: Canvas, method: str, estimate: Mapping[str, object]) -> None:
    """Store a slide's stains. Two workers find the same; the first one's row stays."""
    CanvasStain.objects.get_or_create(canvas=canvas, method=method, defaults={"estimate": estimate})


def embedding_save(
    *,
    roi_id: uuid.UUID,
    geometry: dict[str, Any],
    encoder: Encoder,
    vector: ArrayF32,
    patch_count: int,
    seconds: float,
    own: OwnVectors | None = None,
) -> Embedding | None:
    """Write the vector of an outline, unless the ROI was deleted or redrawn in the meantime.

    Call inside ``effect()``. Emits ``roi.embedded``; submits a new index file where one is due.

    Args:
        own: what encoders of the lab's own that read pixels made of it. Without it a job embeds it.
    Returns:
        The row; None if the outline is no longer the ROI's.
    """
    with transaction.atomic():
        roi = Roi.objects.live().select_for_update().filter(pk=roi_id).first()
        if roi is None or roi.geometry != geometry:
            return None
        data = np.ascontiguousarray(vector, dtype="<f4").tobytes()
        return _write_embedding(
            roi, encoder, own or {}, vector=data, patch_count=patch_count, seconds=seconds
        )


def unembeddable_save(
    *, roi_id: uuid.UUID, geometry: dict[str, Any], encoder: Encoder, error: MlError
) -> None:
    """Note why an outline has no vector, unless it was redrawn or deleted in the meantime."""
    code = NO_TISSUE if isinstance(error, EmptyRegionError) else error.code
    with transaction.atomic():
        roi = Roi.objects.live().select_for_update().filter(pk=roi_id).first()
        if roi is not None and roi.geometry == geometry:
            facts = {"code": code, "message": str(error)}
            Unembeddable.objects.update_or_create(encoder=encoder, roi=roi, defaults=facts)


def _write_embedding(roi: Roi, encoder: Encoder, given: OwnVectors, **fields: Any) -> Embedding:
    """Insert under the encoder's lock, so that ids become visible in their order."""
    Encoder.objects.select_for_update().get(pk=encoder.pk)
    current = Embedding.objects.filter(roi=roi, superseded_at__isnull=True)
    outdated = Q(encoder=encoder) & ~Q(roi_version=roi.version) | ~Q(encoder__kind=encoder.kind)
    current.filter(outdated).update(superseded_at=Now())
    row, is_new = Embedding.objects.get_or_create(
        encoder=encoder,
        roi=roi,
        roi_version=roi.version,
        defaults={"lab_id": roi.lab_id, "canvas_id": roi.canvas_id, **fields},
    )
    Unembeddable.objects.filter(encoder=encoder, roi=roi).delete()
    if is_new:
        event_emit(
            "roi.embedded",
            lab_id=roi.lab_id,
            payload={"roi_id": str(roi.pk), "encoder_id": str(encoder.pk), "version": roi.version},
        )
        index_build_if_due(scope=Scope(encoder, roi.lab_id))
    for own in selectors.encoders_to_keep_up(encoder, roi.lab_id):
        _follow(row, own, given.get(own.pk))
    return row


def _follow(row: Embedding, own: Encoder, found: tuple[ArrayF32, int] | None) -> None:
    """The lab's own encoder gets its vector too, now or by a job."""
    if not own.is_trained:
        vector = selectors.mapped(own, selectors.vector_of(row)[None])[0]
        own_write(row, own, vector, patch_count=row.patch_count)
    elif found is not None:
        own_write(row, own, found[0], patch_count=found[1])
    else:
        archive_embed_submit(own, None)
