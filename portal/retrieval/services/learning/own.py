"""Writes of a lab's own encoder: a vector of a region, and the job that embeds what lacks one."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from ml.errors import EmptyRegionError, MlError
from ml.types import ArrayF32
from portal.annotations.models import Roi
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import User
from portal.retrieval import selectors
from portal.retrieval.indexes import Scope
from portal.retrieval.models import CURRENT, Embedding, Encoder, Unembeddable
from portal.retrieval.selectors import METRIC_KIND, NO_TISSUE, OWN_KIND
from portal.retrieval.services.indexes import index_build_if_due


def archive_embed_submit(encoder: Encoder, user: User | None) -> Job:
    """The open job that embeds a lab's archive with an encoder of its own, or a new one.

    Inside a transaction that holds the lock of its base: the job ends under that lock, once it has
    looked whether there is more to do.
    """
    if encoder.lab is None:
        raise ValueError(f"{encoder} is not an encoder of a lab")
    known = selectors.own_job_open(encoder)
    return known or job_submit(
        kind=OWN_KIND if encoder.is_trained else METRIC_KIND,
        args={"encoder_id": str(encoder.pk)},
        lab=encoder.lab,
        user=user,
        target_name=f"All ROIs with {encoder}",
    )


def own_write(
    row: Embedding, encoder: Encoder, vector: ArrayF32, *, patch_count: int, seconds: float = 0.0
) -> None:
    """Write the vector that the lab's own encoder has of the region; emits no event.

    Args:
        row: the current vector of the base, whose lock the transaction holds.
    """
    Encoder.objects.select_for_update().get(pk=encoder.pk)
    mine = Embedding.everything.filter(encoder=encoder, roi=row.roi_id)
    mine.filter(CURRENT).exclude(roi_version=row.roi_version).update(superseded_at=Now())
    mine.exclude(CURRENT).filter(roi_version=row.roi_version).delete()
    Embedding.everything.get_or_create(
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


def own_save(*, encoder: Encoder, roi: Roi, found: Any) -> None:
    """Keep what the lab's own encoder found in an outline, unless it is another by now.

    Inside ``part()``.

    Args:
        found: as ``Embedded``, or the error that it raised.
    """
    with transaction.atomic():
        now = Roi.everything.select_for_update().filter(pk=roi.pk).first()
        Encoder.objects.select_for_update().get(pk=encoder.base_id or encoder.pk)
        rows = Embedding.everything.filter(CURRENT, encoder=encoder.base_id, roi=roi.pk)
        row = rows.order_by().first()
        if row is None or now is None or now.geometry != roi.geometry:
            return
        if isinstance(found, MlError | OSError):
            _note(encoder, roi, found)
            return
        own_write(row, encoder, found.vector, patch_count=found.n_patches, seconds=found.seconds)


def _note(encoder: Encoder, roi: Roi, error: MlError | OSError) -> None:
    code = error.code if isinstance(error, MlError) else "file-missing"
    if isinstance(error, EmptyRegionError):
        code = NO_TISSUE
    facts = {"code": code, "message": str(error)}
    Unembeddable.objects.update_or_create(encoder=encoder, roi_id=roi.pk, defaults=facts)
