"""Save vectors of a lab's own encoder, and submit the job for missing ones."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from ml.errors import EmptyRegionError, MlError
from ml.types import ArrayF32
from portal.annotations.models import Roi
from portal.embeddings.indexes import Scope
from portal.embeddings.models import CURRENT, Embedding, Encoder, Unembeddable
from portal.embeddings.selectors.embeddings import NO_TISSUE
from portal.embeddings.selectors.lab_encoders import (
    LAB_ENCODER_KIND,
    METRIC_KIND,
    lab_encoder_job_open,
)
from portal.embeddings.services.indexes import index_build_if_due
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import User


def archive_embed_submit(encoder: Encoder, user: User | None) -> Job:
    """Return the unfinished job that embeds a lab's archive with its own encoder, or submit one.

    Call in a transaction that holds the lock of the base encoder: the job ends under that lock,
    after checking for more work.
    """
    if encoder.lab is None:
        raise ValueError(f"{encoder} is not an encoder of a lab")
    open_job = lab_encoder_job_open(encoder)
    return open_job or job_submit(
        kind=LAB_ENCODER_KIND if encoder.is_trained else METRIC_KIND,
        args={"encoder_id": str(encoder.pk)},
        lab=encoder.lab,
        user=user,
        target_name=f"All regions with {encoder}",
    )


def lab_vector_write(
    row: Embedding, encoder: Encoder, vector: ArrayF32, *, patch_count: int, seconds: float = 0.0
) -> None:
    """Write a vector of the lab's own encoder; emits no event.

    Args:
        row: Current vector of the base, whose lock the transaction holds.
    """
    Encoder.objects.select_for_update().get(pk=encoder.pk)
    rows_of_encoder = Embedding.all_objects.filter(encoder=encoder, roi=row.roi_id)
    rows_of_encoder.filter(CURRENT).exclude(roi_version=row.roi_version).update(superseded_at=Now())
    rows_of_encoder.exclude(CURRENT).filter(roi_version=row.roi_version).delete()
    Embedding.all_objects.get_or_create(
        encoder=encoder,
        roi_id=row.roi_id,
        roi_version=row.roi_version,
        defaults={
            "lab_id": row.lab_id,
            "canvas_id": row.canvas_id,
            "vector": vector.astype("<f4").tobytes(),
            "patch_count": patch_count,
            "seconds": seconds,
        },
    )
    Unembeddable.objects.filter(encoder=encoder, roi=row.roi_id).delete()
    index_build_if_due(scope=Scope(encoder, row.lab_id))


def lab_vector_save(*, encoder: Encoder, roi: Roi, result: Any) -> None:
    """Save the result of the lab's own encoder for an outline, unless the outline has changed.

    Call inside ``part()``.

    Args:
        result: ``RegionEmbedding``, or the error that computing it raised.
    """
    with transaction.atomic():
        now = Roi.all_objects.select_for_update().filter(pk=roi.pk).first()
        Encoder.objects.select_for_update().get(pk=encoder.base_id or encoder.pk)
        rows = Embedding.all_objects.filter(CURRENT, encoder=encoder.base_id, roi=roi.pk)
        row = rows.order_by().first()
        if row is None or now is None or now.geometry != roi.geometry:
            return
        if isinstance(result, MlError | OSError):
            _save_error(encoder, roi, result)
            return
        lab_vector_write(
            row, encoder, result.vector, patch_count=result.n_patches, seconds=result.seconds
        )


def _save_error(encoder: Encoder, roi: Roi, error: MlError | OSError) -> None:
    code = error.code if isinstance(error, MlError) else "file-missing"
    if isinstance(error, EmptyRegionError):
        code = NO_TISSUE
    facts = {"code": code, "message": str(error)}
    Unembeddable.objects.update_or_create(encoder=encoder, roi_id=roi.pk, defaults=facts)
