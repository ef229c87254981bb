"""Embed with a lab's own encoders."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from django.db import OperationalError

from ml.errors import BadInputError, CancelledError, MlError, WeightsError
from portal.annotations.models import Roi
from portal.core.errors import NotFoundError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, job_task
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.encoders import encoder_get
from portal.embeddings.selectors.lab_encoders import (
    LAB_ENCODER_KIND,
    METRIC_KIND,
    lab_encoder_progress,
    lab_encoder_weights,
    lab_encoders_following,
    rois_for_lab_encoder,
)
from portal.embeddings.services.embeddings import LabVectors, canvas_is_unchanged
from portal.embeddings.services.lab_encoders import lab_vector_save
from portal.embeddings.services.mapped_vectors import (
    lab_encoder_switch_if_complete,
    mapped_vectors_add,
)
from portal.embeddings.tasks.completion import finish_if_done
from portal.embeddings.tasks.regions import regions_open

if TYPE_CHECKING:
    from ml.roi.embedding import RegionEmbedding
    from ml.roi.protocol import RegionEncoder

PART_ROIS = 32  # seconds on two cores, then other jobs may run


def lab_encoder_network(encoder: Encoder) -> RegionEncoder:
    """Network of a lab's own encoder.

    Raises:
        WeightsError: The weights are missing or damaged.
    """
    return _network(encoder.pk)


@lru_cache(maxsize=4)  # active labs; tens of megabytes each
def _network(encoder_id: uuid.UUID) -> RegionEncoder:
    """Cached network. Weights never change: a new training is another encoder."""
    from ml.roi.load import read_encoder

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own.safetensors"
        path.write_bytes(lab_encoder_weights(encoder_id))
        return read_encoder(path)


def lab_encoder_vectors(context: JobContext, roi: Roi, base: Encoder) -> LabVectors:
    """Vectors of an ROI by the lab's own encoders, so that their searches find it at once.

    Failures are left to the job that embeds ROIs without a vector.
    """
    vectors: LabVectors = {}
    for lab_encoder in lab_encoders_following(base, roi.lab_id):
        if not lab_encoder.is_trained:
            continue
        try:
            network = lab_encoder_network(lab_encoder)
        except WeightsError:  # reported by its job
            continue
        report_progress = partial(context.progress, 0, 0, "embedding with the lab's own encoder")
        (embedded,) = _embed(network, [roi], report_progress)
        if not isinstance(embedded, MlError | OSError):
            vectors = {**vectors, lab_encoder.pk: (embedded.vector, embedded.n_patches)}
    return vectors


def _embed(
    network: RegionEncoder, rois: Sequence[Roi], report_progress: Callable[[], None]
) -> Sequence[RegionEmbedding | MlError | OSError]:
    """Embed ROIs of one canvas; an error for each if the file cannot be read."""
    try:
        with regions_open(network, rois[0].canvas) as embed:
            return embed(rois, lambda *_: report_progress())
    except CancelledError:
        raise
    except (MlError, FileNotFoundError) as error:
        return [error for _ in rois]


@job_task(
    LAB_ENCODER_KIND,
    queue="gpu",
    title="Prepare the archive for what was learned",
    priority=Priority.BULK,
    retry_on=(OSError, OperationalError),
)
def encoder_embed(context: JobContext, *, encoder_id: str) -> JobResult:
    """Embed missing ROIs with a lab's own encoder, then let the lab's searches use it.

    Each part is committed: after an interruption, the next attempt continues.
    """
    encoder = lab_encoder_in_use(encoder_id)
    roi_count = 0
    try:
        network = lab_encoder_network(encoder) if encoder else None
    except WeightsError as error:
        raise UserError(f"{encoder}: {error}.", code=error.code) from error
    while encoder is not None and network is not None:
        before, total = lab_encoder_progress(encoder)
        report_progress = partial(context.progress, before, total, "embedding regions")
        report_progress()
        rois = rois_for_lab_encoder(encoder, PART_ROIS)
        if rois:
            roi_count += _save_part(context, encoder, rois, _embed(network, rois, report_progress))
            context.give_way()
        elif finish_if_done(context, partial(lab_encoder_switch_if_complete, encoder)):
            return {"regions": roi_count}
        encoder = lab_encoder_in_use(encoder_id)
    return {"skipped": "no longer wanted"}


def _save_part(
    context: JobContext,
    encoder: Encoder,
    rois: Sequence[Roi],
    results: Sequence[RegionEmbedding | MlError | OSError],
) -> int:
    with context.part():
        if not canvas_is_unchanged(rois[0].canvas, lock=False):
            return 0
        for roi, result in zip(rois, results, strict=True):
            lab_vector_save(encoder=encoder, roi=roi, result=result)
    return sum(not isinstance(result, BadInputError) for result in results)


@job_task(
    METRIC_KIND,
    title="Prepare the archive for what was learned",
    priority=Priority.BULK,
    retry_on=(OSError, OperationalError),  # deadlocks
)
def metric_embed(context: JobContext, *, encoder_id: str) -> JobResult:
    """Map a lab's vectors in parts, then let the lab's searches use them.

    Each part is committed: after an interruption, the next attempt continues.
    """
    encoder = lab_encoder_in_use(encoder_id)
    if encoder is None:
        return {"skipped": "no longer wanted"}
    before, total = lab_encoder_progress(encoder)
    roi_count = before
    while encoder is not None:
        context.progress(min(roi_count, total), total, "embedding regions")
        with context.part():
            looked_at = mapped_vectors_add(encoder)
        roi_count += looked_at
        if looked_at:
            context.give_way()
        elif finish_if_done(context, partial(lab_encoder_switch_if_complete, encoder)):
            return {"regions": roi_count, "mapped": roi_count - before}
        encoder = lab_encoder_in_use(encoder_id)
    return {"skipped": "no longer wanted"}


def lab_encoder_in_use(encoder_id: str) -> Encoder | None:
    """The encoder; None if it was rolled back or deleted with its lab."""
    try:
        encoder = encoder_get(uuid.UUID(encoder_id))
    except NotFoundError:
        return None
    is_used = encoder.is_default and encoder.is_trained  # it may lack newer regions
    return encoder if encoder.is_next or is_used else None
