"""Reads of embeddings and of ROIs that have none."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

import numpy as np
from django.db.models import Q, QuerySet

from ml.types import ArrayF32, ArrayI64, JsonObject
from portal.annotations.marks import MARKS
from portal.annotations.models import Roi, RoiQuerySet
from portal.archive.models import Canvas
from portal.embeddings.indexes import Scope
from portal.embeddings.models import CURRENT, CanvasStain, Embedding, Encoder, Unembeddable
from portal.jobs.models import ENDED_STATES, Job

EMBED_KIND = "roi_embed"
CANVAS_KIND = "canvas_embed"
NO_TISSUE, NO_AREA = "no-tissue", "no-area"
CHUNK_ROWS = 5_000  # bounds a query's parameters (SQLite: 32,766) and its answer (2.5 MB)


def embedding_current(*, roi: Roi, encoder: Encoder) -> Embedding | None:
    """The embedding of the ROI's present outline, or None."""
    # At most one row matches; with an order, SQLite would scan the table in that order.
    rows = Embedding.objects.filter(CURRENT, encoder=encoder, roi=roi).order_by()
    return next(iter(rows[:1]), None)


def rois_with_embedding(roi_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """ROIs that have a current embedding by a default or next encoder. One query."""
    current = Embedding.objects.filter(
        Q(encoder__is_default=True) | Q(encoder__is_next=True),
        roi_id__in=roi_ids,
        superseded_at__isnull=True,
    )
    return set(current.values_list("roi_id", flat=True))


def embeddings_of_other_kinds(encoder: Encoder) -> QuerySet[Embedding]:
    """Current embeddings by encoders of another kind on canvases of the encoder's kind."""
    return Embedding.objects.filter(CURRENT, canvas__modality=encoder.kind).exclude(
        encoder__kind=encoder.kind
    )


def roi_to_embed(roi_id: uuid.UUID) -> Roi | None:
    """For a task: the ROI with its canvas, or None if it is deleted."""
    roi: Roi | None = Roi.objects.live().select_related("canvas", "lab").filter(pk=roi_id).first()
    return roi


def rois_to_embed(roi_ids: Collection[uuid.UUID]) -> list[Roi]:
    """For a task: ROIs that can be embedded, with their canvases. One query."""
    return list(_areas().select_related("canvas", "lab").filter(pk__in=roi_ids))


def _areas() -> RoiQuerySet:
    """Live ROIs with an area; points and lines are not embedded."""
    return Roi.objects.live().exclude(shape__in=MARKS)


def rois_embedded(rois: Collection[Roi], encoder: Encoder) -> set[uuid.UUID]:
    """For a task: ids of ROIs that the encoder has embedded or cannot embed. One query."""
    rows = Embedding.objects.filter(CURRENT, encoder=encoder, roi__in=[roi.pk for roi in rois])
    return set(rows.order_by().values_list("roi_id", flat=True))


def rois_without_embedding(*, lab_id: uuid.UUID, encoder: Encoder) -> QuerySet[Roi]:
    """For a task: the lab's live ROIs of the encoder's kind that have no vector yet.

    ROIs that cannot be embedded as drawn now are left out.
    """
    current = Embedding.objects.filter(lab_id=lab_id, encoder=encoder, superseded_at__isnull=True)
    rois = _areas().filter(lab_id=lab_id, canvas__modality=encoder.kind)
    hopeless = Unembeddable.objects.filter(encoder=encoder)
    return rois.exclude(pk__in=current.values("roi_id")).exclude(pk__in=hopeless.values("roi_id"))


def canvas_to_embed(canvas_id: uuid.UUID) -> Canvas | None:
    """For a task: the canvas, or None if it does not exist or is in the trash."""
    canvas: Canvas | None = Canvas.objects.filter(pk=canvas_id).first()
    return canvas


def canvas_rois_waiting(canvas: Canvas, encoder: Encoder) -> QuerySet[Roi]:
    """ROIs of a canvas for its bulk job, neighbours near each other.

    ROIs that a person drew or requested have jobs of their own and are left out.
    """
    rois = rois_without_embedding(lab_id=canvas.lab_id, encoder=encoder).filter(canvas=canvas)
    single_jobs = Job.objects.filter(kind=EMBED_KIND, target_type="roi").exclude(
        state__in=ENDED_STATES
    )
    waiting = rois.exclude(pk__in=single_jobs.values("target_id"))
    return waiting.order_by("frame_pts", "top", "left", "pk")


def canvas_progress(canvas: Canvas, encoder: Encoder) -> tuple[int, int]:
    """For a task: number of finished live ROIs of the canvas, and their total."""
    total = _areas().filter(canvas=canvas).count()
    waiting = rois_without_embedding(lab_id=canvas.lab_id, encoder=encoder).filter(canvas=canvas)
    return total - waiting.count(), total


def unembeddable_for(*, roi: Roi, encoder: Encoder | None) -> Unembeddable | None:
    """Reason for the ROI to have no vector by the encoder; None if there is none."""
    if encoder is None:
        return None
    return Unembeddable.objects.filter(encoder=encoder, roi=roi).first()


def canvas_job_open(canvas_id: uuid.UUID, *, encoder_id: str) -> Job | None:
    """The unfinished bulk job of a canvas, locked until the transaction ends.

    Args:
        encoder_id: Encoder that re-embeds its archive; empty for the job of an import.
    """
    jobs = Job.objects.select_for_update().filter(
        kind=CANVAS_KIND, target_id=canvas_id, args__encoder_id=encoder_id
    )
    return jobs.exclude(state__in=ENDED_STATES).order_by("created_at").first()


def stain_json(canvas: Canvas, *, method: str) -> JsonObject | None:
    """For a task: stored stains of a slide by this method; None if not estimated yet."""
    stain = CanvasStain.objects.filter(canvas=canvas, method=method).first()
    return stain.estimate if stain else None


def embed_job(*, roi: Roi) -> Job | None:
    """Newest job that embeds this ROI. The caller has checked that the ROI is visible."""
    jobs = Job.objects.filter(target_type="roi", target_id=roi.pk, kind=EMBED_KIND)
    return jobs.order_by("-created_at").first()


def vector_of(row: Embedding) -> ArrayF32:
    """Vector of a row, (dim,) float32."""
    return np.frombuffer(bytes(row.vector), dtype="<f4").astype(np.float32)


def vectors_by_id(ids: ArrayI64, *, dim: int) -> tuple[ArrayI64, ArrayF32]:
    """Ids that still exist, also in the trash, ascending, and their (N, dim) vectors."""
    pairs: list[tuple[int, bytes | memoryview]] = []
    for start in range(0, len(ids), CHUNK_ROWS):
        rows = Embedding.all_objects.filter(pk__in=ids[start : start + CHUNK_ROWS].tolist())
        pairs += rows.order_by("pk").values_list("pk", "vector")
    return vectors_stacked(pairs, dim)


def ids_of_rows(rows: QuerySet[Embedding]) -> ArrayI64:
    """Ids of the rows, in the order of the query."""
    return np.array(list(rows.values_list("pk", flat=True)), dtype=np.int64)


def vectors_stacked(
    pairs: list[tuple[int, bytes | memoryview]], dim: int
) -> tuple[ArrayI64, ArrayF32]:
    """Stack ids (N,) and their vectors (N, dim)."""
    ids = np.array([pk for pk, _ in pairs], dtype=np.int64)
    joined = b"".join(bytes(vector) for _, vector in pairs)
    return ids, np.frombuffer(joined, dtype="<f4").reshape(len(ids), dim).astype(np.float32)


def patient_of(case_id: uuid.UUID, key: str) -> str:
    """Patient key of a case, or the case's id if it has none."""
    return key or str(case_id)


def ids_on(
    scope: Scope, canvases: QuerySet[Any], rows: QuerySet[Embedding] | None = None
) -> ArrayI64:
    """Current embeddings on these canvases.

    The ids of the canvases are read first: in a single query, a planner without statistics (after a
    first import) walks all embeddings of the lab, which takes minutes on PostgreSQL.

    Args:
        rows: Embeddings to choose from; None for all that are visible.
    """
    rows = Embedding.objects.all() if rows is None else rows
    on_canvases = rows.filter(CURRENT, encoder=scope.encoder)
    return ids_in(on_canvases, "canvas", list(canvases.order_by().values_list("pk", flat=True)))


def ids_in(rows: QuerySet[Embedding], name: str, keys: list[uuid.UUID]) -> ArrayI64:
    """Ids of the rows whose field ``name`` is one of the keys; no query without keys."""
    chunks = [keys[start : start + CHUNK_ROWS] for start in range(0, len(keys), CHUNK_ROWS)]
    ids_of_chunk = [
        ids_of_rows(rows.filter(**{f"{name}__in": chunk}).order_by()) for chunk in chunks
    ]
    return np.concatenate([np.empty(0, dtype=np.int64), *ids_of_chunk])
