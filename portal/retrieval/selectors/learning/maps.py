"""A lab's own encoders: the maps they are, and which vectors they have yet to map."""

from __future__ import annotations

import uuid
from functools import lru_cache

from django.db.models import Exists, OuterRef, Q, QuerySet

from ml.index.learning.weights import matrix_of_bytes
from ml.types import ArrayF32
from portal.jobs.models import ENDED, Job
from portal.retrieval.models import CURRENT, Embedding, Encoder, Learning

MAP_KIND = "metric_embed"


def mapped(encoder: Encoder, vectors: ArrayF32) -> ArrayF32:
    """Vectors (N, D) of an encoder's base as the lab's own encoder has them.

    Raises:
        WeightsError: its weights are gone or damaged.
    """
    return vectors @ _matrix(encoder.pk, encoder.dim)


@lru_cache(maxsize=32)  # labs at work at once; a quarter of a megabyte each at 256 dimensions
def _matrix(encoder_id: uuid.UUID, dim: int) -> ArrayF32:
    """Weights never change: a new map is another encoder."""
    rows = Learning.everything.filter(encoder=encoder_id)
    return matrix_of_bytes(bytes(rows.values_list("weights", flat=True).first() or b""), dim)


def encoders_to_keep_up(base: Encoder, lab_id: uuid.UUID) -> list[Encoder]:
    """A lab's own encoders that new vectors of their base are mapped by: in use, or about to be."""
    if base.lab_id is not None:
        return []
    rows = Encoder.objects.filter(lab_id=lab_id, base=base)
    return list(rows.filter(Q(is_default=True) | Q(is_next=True)).order_by("pk"))


def embeddings_to_map(encoder: Encoder) -> QuerySet[Embedding]:
    """Current vectors of the base, on canvases in the bin too, that a lab's own has yet to map."""
    own = Embedding.everything.filter(
        CURRENT,
        encoder=encoder,
        roi=OuterRef("roi_id"),
        roi_version=OuterRef("roi_version"),
    )
    base = Embedding.everything.filter(CURRENT, lab=encoder.lab, encoder=encoder.base_id)
    return base.filter(~Exists(own)).order_by("pk")


def map_progress(encoder: Encoder) -> tuple[int, int]:
    """How many of the base's current vectors are mapped, and of how many."""
    base = Embedding.everything.filter(CURRENT, lab=encoder.lab, encoder=encoder.base_id)
    total = base.count()
    return total - embeddings_to_map(encoder).count(), total


def map_job_open(encoder: Encoder) -> Job | None:
    """The job that maps the archive, where one has not ended."""
    jobs = Job.objects.filter(kind=MAP_KIND, args__encoder_id=str(encoder.pk))
    return jobs.exclude(state__in=ENDED).order_by("-created_at").first()
