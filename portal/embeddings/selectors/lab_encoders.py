"""A lab's own encoders: their weights, and the regions they have not embedded yet."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import lru_cache

from django.db.models import Exists, OuterRef, Q, QuerySet

from ml.index.metric_learning.weights import matrix_of_bytes
from ml.types import ArrayF32
from portal.annotations.models import Roi
from portal.core.registry import Registry
from portal.embeddings.models import CURRENT, Embedding, Encoder, Unembeddable
from portal.jobs.models import ENDED_STATES, Job

ENCODER_WEIGHTS: Registry[str, Callable[[uuid.UUID], bytes]] = Registry()
"""Functions that return the weights of a lab's own encoder, or empty bytes if unknown."""
METRIC_KIND, LAB_ENCODER_KIND = "metric_embed", "encoder_embed"


def mapped(encoder: Encoder, vectors: ArrayF32) -> ArrayF32:
    """Map vectors (N, D) of the base encoder to those of the lab's own encoder.

    Raises:
        WeightsError: The weights are missing or damaged.
    """
    return vectors @ _matrix(encoder.pk, encoder.dim)


@lru_cache(maxsize=32)  # active labs; a quarter of a megabyte each at 256 dimensions
def _matrix(encoder_id: uuid.UUID, dim: int) -> ArrayF32:
    """Cached matrix. Weights never change: a new map is another encoder."""
    return matrix_of_bytes(lab_encoder_weights(encoder_id), dim)


def lab_encoder_weights(encoder_id: uuid.UUID) -> bytes:
    """Safetensors file of a lab's own encoder; empty if it is missing."""
    answers = (read(encoder_id) for read in ENCODER_WEIGHTS.all("lab"))
    return next((weights for weights in answers if weights), b"")


def lab_encoders_following(base: Encoder, lab_id: uuid.UUID) -> list[Encoder]:
    """A lab's own encoders, in use or about to be, that follow new vectors of their base."""
    if base.lab_id is not None:
        return []
    rows = Encoder.objects.filter(lab_id=lab_id, base=base)
    return list(rows.filter(Q(is_default=True) | Q(is_next=True)).order_by("pk"))


def embeddings_to_map(encoder: Encoder) -> QuerySet[Embedding]:
    """Current vectors of the base, in the trash too, that the lab's own encoder has not mapped yet.

    For an encoder that reads pixels: vectors of regions that it can still embed, none in the trash.
    """
    embedded = Embedding.all_objects.filter(
        CURRENT,
        encoder=encoder,
        roi=OuterRef("roi_id"),
        roi_version=OuterRef("roi_version"),
    )
    base = _base_embeddings(encoder)
    if encoder.is_trained:
        unembeddable = Unembeddable.objects.filter(encoder=encoder, roi=OuterRef("roi_id"))
        base = base.filter(~Exists(unembeddable))
    return base.filter(~Exists(embedded)).order_by("pk")


def rois_for_lab_encoder(encoder: Encoder, limit: int) -> list[Roi]:
    """For a task: the next regions of one canvas that the lab's own encoder has not embedded."""
    rows = embeddings_to_map(encoder)
    first = rows.first()
    if first is None:
        return []
    keys = rows.filter(canvas=first.canvas_id).values_list("roi_id", flat=True)[:limit]
    rois = Roi.all_objects.select_related("canvas", "lab").filter(pk__in=list(keys))
    return list(rois.order_by("frame_pts", "top", "left", "pk"))


def _base_embeddings(encoder: Encoder) -> QuerySet[Embedding]:
    rows = Embedding.all_objects.filter(CURRENT, lab=encoder.lab, encoder=encoder.base_id)
    return Embedding.without_trashed(rows) if encoder.is_trained else rows


def lab_encoder_progress(encoder: Encoder) -> tuple[int, int]:
    """Number of the base's current vectors that are mapped, and their total."""
    total = _base_embeddings(encoder).count()
    return total - embeddings_to_map(encoder).count(), total


def lab_encoder_job_open(encoder: Encoder) -> Job | None:
    """Unfinished job that embeds the archive with the encoder, or None."""
    jobs = Job.objects.filter(
        kind__in=(METRIC_KIND, LAB_ENCODER_KIND), args__encoder_id=str(encoder.pk)
    )
    return jobs.exclude(state__in=ENDED_STATES).order_by("-created_at").first()
