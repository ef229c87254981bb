"""Save, supersede and delete embeddings."""

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
from portal.embeddings.indexes import Scope
from portal.embeddings.models import CanvasStain, Embedding, Encoder, Unembeddable
from portal.embeddings.selectors.embeddings import NO_TISSUE, vector_of
from portal.embeddings.selectors.lab_encoders import lab_encoders_following, mapped
from portal.embeddings.services.indexes import index_build_if_due
from portal.embeddings.services.lab_encoders import archive_embed_submit, lab_vector_write

LabVectors = Mapping[uuid.UUID, tuple[ArrayF32, int]]
"""Vector and number of patches, by the id of a lab's own encoder."""


def embeddings_supersede(*, roi_ids: Sequence[uuid.UUID]) -> int:
    """Remove the ROIs' vectors from all searches. Returns their number."""
    Unembeddable.objects.filter(roi_id__in=roi_ids).delete()
    current = Embedding.objects.filter(roi_id__in=roi_ids, superseded_at__isnull=True)
    return int(current.update(superseded_at=Now()))


def canvas_embeddings_delete(*, canvas_id: uuid.UUID) -> int:
    """Delete vectors and stains of a canvas whose scale, display range or modality has changed.

    Returns the number of vectors. They are deleted, not superseded, so that no version of an ROI
    gets such a vector back.
    """
    Unembeddable.objects.filter(roi__canvas=canvas_id).delete()
    CanvasStain.objects.filter(canvas=canvas_id).delete()
    deleted, _ = Embedding.all_objects.filter(canvas=canvas_id).delete()
    return deleted


def canvas_is_unchanged(canvas: Canvas, *, lock: bool) -> bool:
    """Return whether scale, display range and modality are unchanged since a canvas was read.

    Args:
        lock: Lock the row until the transaction ends. Not needed in a part of the canvas' bulk job,
            whose row ``canvas_changed`` locks too, after the canvas.
    """
    # Not FOR UPDATE: each new region of the canvas would wait for this transaction (foreign keys).
    rows = Canvas.all_objects.all()
    rows = rows.select_for_update(no_key=True) if lock else rows
    row = rows.filter(pk=canvas.pk, mpp_x=canvas.mpp_x, mpp_y=canvas.mpp_y).first()
    return row is not None and (row.shown_range, row.modality) == (
        canvas.shown_range,
        canvas.modality,
    )


def embedding_carry_over(roi: Roi, encoder: Encoder) -> bool:
    """Copy the ROI's newest vector to its present version, if the outlines are equal."""
    newest = Embedding.objects.filter(roi=roi, encoder=encoder).order_by("-pk").first()
    if newest is None:
        return False
    embedded_revision = RoiRevision.objects.filter(roi=roi, version=newest.roi_version).first()
    if embedded_revision is None or embedded_revision.geometry != roi.geometry:
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
    """Copy vectors of equal outlines; returns the ROIs without one."""
    rows = Embedding.objects.filter(encoder=encoder, roi__in=[roi.pk for roi in rois])
    embedded_ids = set(rows.order_by().values_list("roi_id", flat=True))
    return [
        roi for roi in rois if roi.pk not in embedded_ids or not embedding_carry_over(roi, encoder)
    ]


def stain_save(*, canvas: Canvas, method: str, estimate: Mapping[str, object]) -> None:
    """Store a slide's stains. If two workers estimate them, the first row stays."""
    CanvasStain.objects.get_or_create(canvas=canvas, method=method, defaults={"estimate": estimate})


def embedding_save(
    *,
    roi_id: uuid.UUID,
    geometry: dict[str, Any],
    encoder: Encoder,
    vector: ArrayF32,
    patch_count: int,
    seconds: float,
    lab_vectors: LabVectors | None = None,
) -> Embedding | None:
    """Save the vector of an outline, unless the ROI was deleted or redrawn in the meantime.

    Call inside ``effect()``. Emits ``roi.embedded``; submits an index build if one is due.

    Args:
        lab_vectors: Vectors by the lab's own encoders that read pixels; without them a job embeds
            the ROI.
    Returns:
        The row; None if the outline is no longer the ROI's.
    """
    with transaction.atomic():
        roi = Roi.objects.live().select_for_update().filter(pk=roi_id).first()
        if roi is None or roi.geometry != geometry:
            return None
        data = np.ascontiguousarray(vector, dtype="<f4").tobytes()
        return _write_embedding(
            roi, encoder, lab_vectors or {}, vector=data, patch_count=patch_count, seconds=seconds
        )


def unembeddable_save(
    *, roi_id: uuid.UUID, geometry: dict[str, Any], encoder: Encoder, error: MlError
) -> None:
    """Record why an outline has no vector, unless it was redrawn or deleted in the meantime."""
    code = NO_TISSUE if isinstance(error, EmptyRegionError) else error.code
    with transaction.atomic():
        roi = Roi.objects.live().select_for_update().filter(pk=roi_id).first()
        if roi is not None and roi.geometry == geometry:
            facts = {"code": code, "message": str(error)}
            Unembeddable.objects.update_or_create(encoder=encoder, roi=roi, defaults=facts)


def _write_embedding(
    roi: Roi, encoder: Encoder, lab_vectors: LabVectors, **fields: Any
) -> Embedding:
    """Insert under the encoder's lock, so that ids become visible in ascending order."""
    Encoder.objects.select_for_update(no_key=True).get(pk=encoder.pk)
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
    for lab_encoder in lab_encoders_following(encoder, roi.lab_id):
        _add_lab_vector(row, lab_encoder, lab_vectors.get(lab_encoder.pk))
    return row


def _add_lab_vector(
    row: Embedding, lab_encoder: Encoder, lab_vector: tuple[ArrayF32, int] | None
) -> None:
    """Add the vector of the lab's own encoder, now or by a job."""
    if not lab_encoder.is_trained:
        vector = mapped(lab_encoder, vector_of(row)[None])[0]
        lab_vector_write(row, lab_encoder, vector, patch_count=row.patch_count)
    elif lab_vector is not None:
        lab_vector_write(row, lab_encoder, lab_vector[0], patch_count=lab_vector[1])
    else:
        archive_embed_submit(lab_encoder, None)
