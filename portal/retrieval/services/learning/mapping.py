"""Writes of a lab's own vectors: those of the common encoder, mapped."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Now

from ml.types import ArrayF32
from portal.annotations.models import Roi
from portal.archive.models import Canvas
from portal.core.events import event_emit
from portal.retrieval import selectors
from portal.retrieval.indexes import Scope
from portal.retrieval.models import CURRENT, Embedding, Encoder
from portal.retrieval.selectors.embeddings import vectors_stacked
from portal.retrieval.services.indexes import index_build_if_due

PART_ROWS = 1_000  # a part locks their regions: a tenth of a second


def metric_part(encoder: Encoder) -> int:
    """Map the next vectors that the lab's own encoder lacks; how many were looked at.

    Inside ``part()`` or ``effect()``. Images, then their regions are locked, as by whoever gives an
    image another scale or saves a region: what they take out of searches meanwhile is not mapped.
    """
    rows = selectors.embeddings_to_map(encoder)
    wanted = list(rows.values_list("pk", "canvas_id", "roi_id")[:PART_ROWS])
    keys, canvases, rois = zip(*wanted, strict=True) if wanted else ((), (), ())
    with transaction.atomic():
        _lock(Canvas.everything.filter(pk__in=set(canvases)))
        _lock(Roi.everything.filter(pk__in=rois))
        Encoder.objects.select_for_update().get(pk=encoder.pk)
        base = list(rows.filter(pk__in=keys))
        _make_room(encoder, base)
        found = [(row.pk, row.vector) for row in base]
        vectors = selectors.mapped(encoder, vectors_stacked(found, encoder.dim)[1]) if found else ()
        Embedding.everything.bulk_create(
            _copy(row, encoder, vector) for row, vector in zip(base, vectors, strict=True)
        )
    return len(wanted)


def _lock(rows: QuerySet[Any]) -> None:
    """In one order, or two who lock many would wait for each other."""
    list(rows.select_for_update().order_by("pk").values_list("pk", flat=True))


def _make_room(encoder: Encoder, base: list[Embedding]) -> None:
    """Older vectors of these regions leave the search; rows of the same version are deleted."""
    mine = Embedding.everything.filter(encoder=encoder, roi__in=[row.roi_id for row in base])
    mine.filter(CURRENT).update(superseded_at=Now())
    version = Embedding.everything.filter(pk__in=[row.pk for row in base], roi=OuterRef("roi_id"))
    mine.annotate(now=Subquery(version.values("roi_version")[:1])).filter(
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


def metric_switch(encoder: Encoder) -> bool:
    """Make it what its lab's searches go by, unless vectors came in that it has yet to map.

    Inside ``effect()``. New vectors wait for the lock on their encoder. Emits ``encoder.switched``.

    Returns:
        False if something is left to do.
    """
    Encoder.objects.select_for_update().get(pk=encoder.base_id or encoder.pk)
    if selectors.embeddings_to_map(encoder).exists():
        return False
    own = Encoder.objects.filter(lab=encoder.lab_id, kind=encoder.kind)
    if own.filter(pk=encoder.pk, is_next=True).exists():
        own.update(is_default=False)
        own.filter(pk=encoder.pk).update(is_default=True, is_next=False)
        payload = {"encoder_id": str(encoder.pk)}
        event_emit("encoder.switched", lab_id=encoder.lab_id, payload=payload)
        if encoder.lab_id is not None:
            index_build_if_due(scope=Scope(encoder, encoder.lab_id))
    return True
