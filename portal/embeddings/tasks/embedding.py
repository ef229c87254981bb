"""Embed one requested ROI, or all ROIs of a canvas in parts."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from django.db.models import QuerySet

from ml.errors import BadInputError, EmptyRegionError
from portal.annotations.marks import MARKS
from portal.annotations.models import Roi
from portal.archive.models import Canvas
from portal.core.tasks import JobContext, JobResult, Priority, job_task
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.embeddings import (
    CANVAS_KIND,
    EMBED_KIND,
    canvas_progress,
    canvas_rois_waiting,
    canvas_to_embed,
    embedding_current,
    roi_to_embed,
)
from portal.embeddings.services.embeddings import (
    LabVectors,
    canvas_is_unchanged,
    embedding_save,
    embeddings_carry_over,
    unembeddable_save,
)
from portal.embeddings.tasks.batching import EMBED_BATCHES, BatchedEmbedding
from portal.embeddings.tasks.completion import finish_if_done
from portal.embeddings.tasks.lab_encoders import lab_encoder_vectors
from portal.embeddings.tasks.regions import EmbedRegions, encoder_ready, regions_open

if TYPE_CHECKING:
    from ml.roi.embedding import RegionEmbedding
    from ml.roi.protocol import RegionEncoder

PART_S = 2.0  # duration of a part, and so the longest wait of urgent jobs
FIRST_PART, MAX_PART = 4, 256  # ROIs; later parts are sized by the measured time


@job_task(
    EMBED_KIND,
    queue="gpu",
    title="Prepare region for search",
    retry_on=(OSError,),
    batching=EMBED_BATCHES,
)
def roi_embed(context: JobContext, *, roi_id: str) -> JobResult:
    """Embed an ROI. Skipped if it is deleted or already embedded."""
    roi = roi_to_embed(uuid.UUID(roi_id))
    if roi is None:
        return {"skipped": "deleted"}
    if roi.shape in MARKS:  # changed after the job was submitted
        return {"outcome": "no area"}
    network, row = encoder_ready(roi.canvas.modality)
    current = embedding_current(roi=roi, encoder=row)
    if current is not None:
        return {"embedding_id": current.pk, "skipped": "already embedded"}
    context.progress(0, 0, "reading")
    embedded = _batched_or_embedded(context, network, row, roi)
    lab_vectors = lab_encoder_vectors(context, roi, row)
    while True:
        if isinstance(embedded, BadInputError) and not isinstance(embedded, EmptyRegionError):
            raise embedded
        try:
            with context.effect():
                # pixel size, display range or modality may have changed since the job was submitted
                if not canvas_is_unchanged(roi.canvas, lock=True):
                    raise _CanvasChangedError
                embedding_id = _save(roi, row, embedded, lab_vectors)
            return _job_result(embedded, embedding_id)
        except _CanvasChangedError:
            roi = roi_to_embed(roi.pk)
            if roi is None:
                return {"skipped": "deleted"}
            network, row = encoder_ready(roi.canvas.modality)
            embedded = _embed(context, network, roi)
            lab_vectors = lab_encoder_vectors(context, roi, row)


class _CanvasChangedError(Exception):
    """The vector was computed for an outdated pixel size, display range or modality."""


def _job_result(embedded: RegionEmbedding | BadInputError, embedding_id: int | None) -> JobResult:
    if isinstance(embedded, BadInputError):
        return {"outcome": "no tissue", "reason": str(embedded)}
    if embedding_id is None:
        return {"skipped": "changed in the meantime"}
    return {
        "embedding_id": embedding_id,
        "patches": embedded.n_patches,
        "seconds": round(embedded.seconds, 3),
    }


def _batched_or_embedded(
    context: JobContext, network: RegionEncoder, encoder: Encoder, roi: Roi
) -> RegionEmbedding | BadInputError:
    batched = context.batch_result
    if isinstance(batched, BatchedEmbedding) and batched.is_valid_for(roi, encoder):
        return batched.result
    return _embed(context, network, roi)


def _embed(
    context: JobContext, network: RegionEncoder, roi: Roi
) -> RegionEmbedding | BadInputError:
    with regions_open(network, roi.canvas) as embed:
        (embedded,) = embed([roi], context.progress)
    return embedded


@job_task(
    CANVAS_KIND,
    queue="gpu",
    title="Prepare all regions for search",
    priority=Priority.BULK,
    retry_on=(OSError,),
)
def canvas_embed(context: JobContext, *, canvas_id: str, encoder_id: str) -> JobResult:
    """Embed the ROIs of a canvas in parts.

    Each part is committed: after an interruption, the next attempt continues.

    Args:
        encoder_id: Encoder it was submitted for; the present encoder is used anyway.
    """
    canvas = canvas_to_embed(uuid.UUID(canvas_id))
    if canvas is None:
        return {"skipped": "deleted"}
    counts = {"embedded": 0, "no_tissue": 0, "failed": 0}
    size = FIRST_PART
    while canvas is not None:
        network, row = encoder_ready(canvas.modality)
        waiting = canvas_rois_waiting(canvas, row)
        with regions_open(network, canvas) as embed:
            while True:
                rois = list(waiting[:size])
                if not rois and finish_if_done(context, partial(_is_empty, waiting)):
                    return dict(counts)
                if not rois:
                    continue
                began_s = time.perf_counter()
                if not _embed_part(context, canvas, row, rois, embed, counts):
                    break
                took_s = max(time.perf_counter() - began_s, 0.001)
                size = max(1, min(int(len(rois) * PART_S / took_s), 2 * size, MAX_PART))
                context.give_way()
        canvas = canvas_to_embed(canvas.pk)  # it has changed
    return {"skipped": "deleted"}


def _is_empty(rows: QuerySet[Roi]) -> bool:
    return not rows.exists()


def _embed_part(  # noqa: PLR0917
    context: JobContext,
    canvas: Canvas,
    encoder: Encoder,
    rois: Sequence[Roi],
    embed: EmbedRegions,
    counts: dict[str, int],
) -> bool:
    """Embed a part; False if the canvas has changed and nothing was written."""

    def report_progress(*_: object) -> None:
        context.progress(embedded_count, total, "embedding regions")

    embedded_count, total = canvas_progress(canvas, encoder)
    report_progress()
    with context.part():
        if not canvas_is_unchanged(canvas, lock=False):
            return False
        new = embeddings_carry_over(rois, encoder=encoder)
    counts["embedded"] += len(rois) - len(new)
    embedded = embed(new, report_progress) if new else []
    with context.part():
        if not canvas_is_unchanged(canvas, lock=False):
            return False
        for roi, result in zip(new, embedded, strict=True):
            _save(roi, encoder, result)
    for result in embedded:
        is_error, is_blank = isinstance(result, BadInputError), isinstance(result, EmptyRegionError)
        counts["no_tissue" if is_blank else "failed" if is_error else "embedded"] += 1
    embedded_count, total = canvas_progress(canvas, encoder)
    report_progress()
    return True


def _save(
    roi: Roi,
    encoder: Encoder,
    result: RegionEmbedding | BadInputError,
    lab_vectors: LabVectors | None = None,
) -> int | None:
    """Id of the saved vector; None if there is none, or the outline has changed."""
    if isinstance(result, BadInputError):
        unembeddable_save(roi_id=roi.pk, geometry=roi.geometry, encoder=encoder, error=result)
        return None
    saved = embedding_save(
        roi_id=roi.pk,
        geometry=roi.geometry,
        encoder=encoder,
        vector=result.vector,
        patch_count=result.n_patches,
        seconds=result.seconds,
        lab_vectors=lab_vectors,
    )
    return saved.pk if saved else None
