"""Embed the ROIs of several waiting jobs in one batch."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from django.conf import settings

from ml.errors import BadInputError
from portal.annotations.models import Roi
from portal.core.tasks import Arguments, Batching, JobCancelled, JobContext, LeaseLost
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.embeddings import rois_embedded, rois_to_embed
from portal.embeddings.tasks.regions import canvases_embed, encoder_ready

if TYPE_CHECKING:
    from ml.roi.embedding import RegionEmbedding


@dataclass(frozen=True, slots=True)
class BatchedEmbedding:
    """Result for one outline: its vector, or the error raised for it."""

    encoder_id: Any
    geometry: dict[str, Any]
    result: RegionEmbedding | BadInputError

    def is_valid_for(self, roi: Roi, encoder: Encoder) -> bool:
        """False if the outline or the encoder has changed."""
        return (self.encoder_id, self.geometry) == (encoder.pk, roi.geometry)


def jobs_per_batch() -> int:
    """Number of ``roi_embed`` jobs per batch, as configured or as the device allows."""
    configured: int = settings.TESSERA_EMBED_BATCH_SIZE
    if configured:
        return configured
    from ml.roi.batching import embed_batch_size

    return embed_batch_size()


def encoder_kinds_of_jobs(arguments: Sequence[Arguments]) -> list[str | None]:
    """Kind of encoder for each job; None if its ROI no longer exists."""
    ids = [uuid.UUID(str(argument["roi_id"])) for argument in arguments]
    rois = {roi.pk: roi for roi in rois_to_embed(ids)}
    return [rois[pk].canvas.modality if pk in rois else None for pk in ids]


def embed_batch(jobs: Sequence[tuple[JobContext, Arguments]]) -> list[BatchedEmbedding | None]:
    """Embed the ROIs of jobs that need the same encoder; None for jobs left to embed their own."""
    ids = [uuid.UUID(str(arguments["roi_id"])) for _, arguments in jobs]
    rois = rois_to_embed(ids)
    if not rois:
        return [None] * len(jobs)
    network, encoder = encoder_ready(rois[0].canvas.modality)
    embedded_ids = rois_embedded(rois, encoder)
    rois = sorted(
        (roi for roi in rois if roi.pk not in embedded_ids), key=lambda roi: roi.canvas_id
    )
    groups = [list(group) for _, group in groupby(rois, key=lambda roi: roi.canvas_id)]
    embeddings: dict[uuid.UUID, BatchedEmbedding] = {}
    results = canvases_embed(network, groups, _SharedProgress([context for context, _ in jobs]))
    for group, vectors in zip(groups, results, strict=True):
        for roi, embedding in zip(group, vectors, strict=bool(vectors)):
            embeddings[roi.pk] = BatchedEmbedding(encoder.pk, roi.geometry, embedding)
    return [embeddings.get(pk) for pk in ids]


class _SharedProgress:
    """Report progress of a batch to all its jobs; stop when none of them is left."""

    def __init__(self, contexts: Sequence[JobContext]) -> None:
        self._contexts = list(contexts)

    def __call__(self, done: int, total: int, phase: str) -> None:
        for context in tuple(self._contexts):
            try:
                context.progress(done, total, phase)
            except (JobCancelled, LeaseLost):
                self._contexts.remove(context)
        if not self._contexts:
            raise JobCancelled


EMBED_BATCHES = Batching(max_size=jobs_per_batch, keys=encoder_kinds_of_jobs, run=embed_batch)
