"""Reads of embeddings: which ROIs have one, and their vectors."""

from __future__ import annotations

import uuid
from collections.abc import Collection

import numpy as np
from django.db.models import Q, QuerySet

from ml.types import ArrayF32, ArrayI64, JsonObject
from portal.annotations.marks import MARKS
from portal.annotations.models import Roi, RoiQuerySet
from portal.archive.models import Canvas
from portal.jobs.models import ENDED, Job
from portal.retrieval.models import (
    CANVASES_OF,
    CURRENT,
    CanvasStain,
    Embedding,
    Encoder,
    EncoderKind,
    Unembeddable,
)

EMBED_KIND = "roi_embed"
CANVAS_KIND = "canvas_embed"
NO_TISSUE, NO_AREA = "no-tissue", "no-area"
CHUNK_ROWS = 5_000  # bounds a query's parameters (SQLite: 32,766) and its answer (2.5 MB)


def embedding_current(*, roi: Roi, encoder: Encoder) -> Embedding | None:
    """The embedding of the ROI's present outline, or None while there is none."""
    # There is one at most; asked for in an order, SQLite would walk the table in it.
    rows = Embedding.objects.filter(CURRENT, encoder=encoder, roi=roi).order_by()
    return next(iter(rows[:1]), None)


def rois_with_embedding(roi_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Those of the ROIs that can be searched with as they are now. One query."""
    current = Embedding.objects.filter(
        Q(encoder__is_default=True) | Q(encoder__is_next=True),
        roi_id__in=roi_ids,
        superseded_at__isnull=True,
    )
    return set(current.values_list("roi_id", flat=True))


def embeddings_of_other_kinds(encoder: Encoder) -> QuerySet[Embedding]:
    """Current embeddings of ROIs of the encoder's kind by encoders of another kind."""
    return Embedding.objects.filter(
        CURRENT, canvas__kind__in=CANVASES_OF[EncoderKind(encoder.kind)]
    ).exclude(encoder__kind=encoder.kind)


def roi_to_embed(roi_id: uuid.UUID) -> Roi | None:
    """For a task: the ROI with its canvas, or None if it is deleted or gone."""
    found: Roi | None = Roi.objects.live().select_related("canvas", "lab").filter(pk=roi_id).first()
    return found


def rois_to_embed(roi_ids: Collection[uuid.UUID]) -> list[Roi]:
    """For a task: those of the ROIs that can be embedded, with their canvases. One query."""
    return list(_areas().select_related("canvas", "lab").filter(pk__in=roi_ids))


def _areas() -> RoiQuerySet:
    """Live ROIs that have an area: there is nothing to embed of points and lines."""
    return Roi.objects.live().exclude(shape__in=MARKS)


def rois_embedded(rois: Collection[Roi], encoder: Encoder) -> set[uuid.UUID]:
    """For a task: keys of those that the encoder is done with as they are drawn. One query."""
    rows = Embedding.objects.filter(CURRENT, encoder=encoder, roi__in=[roi.pk for roi in rois])
    return set(rows.order_by().values_list("roi_id", flat=True))


def rois_without_embedding(*, lab_id: uuid.UUID, encoder: Encoder) -> QuerySet[Roi]:
    """For a task: the lab's live ROIs of the encoder's kind that it has yet to embed.

    Those that it cannot embed as they are drawn now are not among them.
    """
    current = Embedding.objects.filter(lab_id=lab_id, encoder=encoder, superseded_at__isnull=True)
    rois = _areas().filter(lab_id=lab_id, canvas__kind__in=CANVASES_OF[EncoderKind(encoder.kind)])
    hopeless = Unembeddable.objects.filter(encoder=encoder)
    return rois.exclude(pk__in=current.values("roi_id")).exclude(pk__in=hopeless.values("roi_id"))


def canvas_to_embed(canvas_id: uuid.UUID) -> Canvas | None:
    """For a task: the canvas, or None if it is gone or in the bin."""
    found: Canvas | None = Canvas.objects.filter(pk=canvas_id).first()
    return found


def canvas_rois_waiting(canvas: Canvas, encoder: Encoder) -> QuerySet[Roi]:
    """For a task: the canvas' ROIs that its bulk job has yet to embed, neighbours near each other.

    One that somebody drew or asked for has a job of its own, which is not waited for.
    """
    rois = rois_without_embedding(lab_id=canvas.lab_id, encoder=encoder).filter(canvas=canvas)
    own = Job.objects.filter(kind=EMBED_KIND, target_type="roi").exclude(state__in=ENDED)
    waiting = rois.exclude(pk__in=own.values("target_id"))
    return waiting.order_by("frame_pts", "top", "left", "pk")


def canvas_progress(canvas: Canvas, encoder: Encoder) -> tuple[int, int]:
    """For a task: how many of the canvas' live ROIs the encoder is done with, and of how many."""
    total = _areas().filter(canvas=canvas).count()
    waiting = rois_without_embedding(lab_id=canvas.lab_id, encoder=encoder).filter(canvas=canvas)
    return total - waiting.count(), total


def unembeddable_for(*, roi: Roi, encoder: Encoder | None) -> Unembeddable | None:
    """Why the encoder has no vector of this ROI, if it tried."""
    if encoder is None:
        return None
    return Unembeddable.objects.filter(encoder=encoder, roi=roi).first()


def canvas_job_open(canvas_id: uuid.UUID, *, encoder_id: str) -> Job | None:
    """The bulk job of a canvas that has not ended, locked until the transaction ends.

    Args:
        encoder_id: of the encoder that embeds its archive anew; empty: the job of an import.
    """
    jobs = Job.objects.select_for_update().filter(
        kind=CANVAS_KIND, target_id=canvas_id, args__encoder_id=encoder_id
    )
    return jobs.exclude(state__in=ENDED).order_by("created_at").first()


def stain_json(canvas: Canvas, *, method: str) -> JsonObject | None:
    """For a task: the stored stains of a slide by this method, None if they are yet unknown."""
    found = CanvasStain.objects.filter(canvas=canvas, method=method).first()
    return found.estimate if found else None


def embed_job(*, roi: Roi) -> Job | None:
    """The newest job that embeds this ROI. The caller has checked that the ROI may be seen."""
    jobs = Job.objects.filter(target_type="roi", target_id=roi.pk, kind=EMBED_KIND)
    return jobs.order_by("-created_at").first()


def vector_of(row: Embedding) -> ArrayF32:
    """(dim,) float32 of a row."""
    return np.frombuffer(bytes(row.vector), dtype="<f4").astype(np.float32)


def vectors_by_id(ids: ArrayI64, *, dim: int) -> tuple[ArrayI64, ArrayF32]:
    """Ids that still exist, ascending, and their (N, dim) vectors."""
    found: list[tuple[int, bytes | memoryview]] = []
    for start in range(0, len(ids), CHUNK_ROWS):
        rows = Embedding.objects.filter(pk__in=ids[start : start + CHUNK_ROWS].tolist())
        found += rows.order_by("pk").values_list("pk", "vector")
    return vectors_stacked(found, dim)


def ids_of_rows(rows: QuerySet[Embedding]) -> ArrayI64:
    """Their ids, in the order of the query."""
    return np.array(list(rows.values_list("pk", flat=True)), dtype=np.int64)


def vectors_stacked(
    found: list[tuple[int, bytes | memoryview]], dim: int
) -> tuple[ArrayI64, ArrayF32]:
    """Ids (N,) and their vectors (N, dim) as one array each."""
    ids = np.array([pk for pk, _ in found], dtype=np.int64)
    joined = b"".join(bytes(vector) for _, vector in found)
    return ids, np.frombuffer(joined, dtype="<f4").reshape(len(ids), dim).astype(np.float32)
