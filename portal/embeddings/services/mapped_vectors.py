"""Vectors of a lab's own encoder that are a linear map of the shared encoder's."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Now

from ml.types import ArrayF32
from portal.annotations.models import Roi
from portal.archive.models import Canvas
from portal.core.events import event_emit
from portal.embeddings.indexes import Scope
from portal.embeddings.models import CURRENT, Embedding, Encoder
from portal.embeddings.selectors.embeddings import vectors_stacked
from portal.embeddings.selectors.lab_encoders import embeddings_to_map, mapped
from portal.embeddings.services.indexes import index_build_if_due

PART_ROWS = 1_000  # locks their regions for a tenth of a second


def mapped_vectors_add(encoder: Encoder) -> int:
    """Map the next vectors that the lab's own encoder lacks; return the number examined.

    Call it inside ``part()`` or ``effect()``. Images are locked first, then their regions, in the
    order used when an image is rescaled or a region is saved: vectors that these remove from
    searches are not mapped.
    """
    rows = embeddings_to_map(encoder)
    part = list(rows.values_list("pk", "canvas_id", "roi_id")[:PART_ROWS])
    keys, canvases, rois = zip(*part, strict=True) if part else ((), (), ())
    with transaction.atomic():
        _lock(Canvas.all_objects.filter(pk__in=set(canvases)))
        _lock(Roi.all_objects.filter(pk__in=rois))
        Encoder.objects.select_for_update().get(pk=encoder.pk)
        base = list(rows.filter(pk__in=keys))
        _retire_older(encoder, base)
        pairs = [(row.pk, row.vector) for row in base]
        vectors = mapped(encoder, vectors_stacked(pairs, encoder.dim)[1]) if pairs else ()
        Embedding.all_objects.bulk_create(
            _copy(row, encoder, vector) for row, vector in zip(base, vectors, strict=True)
        )
    return len(part)


def _lock(rows: QuerySet[Any]) -> None:
    """Lock in one order, to avoid deadlocks."""
    list(rows.select_for_update().order_by("pk").values_list("pk", flat=True))


def _retire_older(encoder: Encoder, base: list[Embedding]) -> None:
    """Supersede older vectors of these regions; delete those of the same version."""
    older = Embedding.all_objects.filter(encoder=encoder, roi__in=[row.roi_id for row in base])
    older.filter(CURRENT).update(superseded_at=Now())
    version = Embedding.all_objects.filter(pk__in=[row.pk for row in base], roi=OuterRef("roi_id"))
    older.annotate(now=Subquery(version.values("roi_version")[:1])).filter(
        roi_version=F("now")
    ).delete()


def _copy(row: Embedding, encoder: Encoder, vector: ArrayF32) -> Embedding:
    return Embedding(
        lab_id=row.lab_id,
        encoder=encoder,
        roi_id=row.roi_id,
        canvas_id=row.canvas_id,
        roi_version=row.roi_version,
        vector=vector.astype("<f4").tobytes(),
        patch_count=row.patch_count,
        seconds=0,
    )


def lab_encoder_switch_if_complete(encoder: Encoder) -> bool:
    """Let the lab's searches use the encoder, unless new vectors are still to be mapped.

    Call inside ``effect()``. New vectors wait for the lock on their encoder. Emits
    ``encoder.switched``.

    Returns:
        False if work is left.
    """
    Encoder.objects.select_for_update().get(pk=encoder.base_id or encoder.pk)
    if embeddings_to_map(encoder).exists():
        return False
    lab_encoders = Encoder.objects.filter(lab=encoder.lab_id, kind=encoder.kind)
    if lab_encoders.filter(pk=encoder.pk, is_next=True).exists():
        lab_encoders.update(is_default=False)
        lab_encoders.filter(pk=encoder.pk).update(is_default=True, is_next=False)
        payload = {"encoder_id": str(encoder.pk)}
        event_emit("encoder.switched", lab_id=encoder.lab_id, payload=payload)
        if encoder.lab_id is not None:
            index_build_if_due(scope=Scope(encoder, encoder.lab_id))
    return True
