"""A lab's own encoders: the maps or weights they are, and which regions they have yet to embed."""

from __future__ import annotations

import uuid
from functools import lru_cache

from django.db.models import Exists, OuterRef, Q, QuerySet

from ml.index.learning.weights import matrix_of_bytes
from ml.types import ArrayF32
from portal.annotations.models import Roi
from portal.jobs.models import ENDED, Job
from portal.retrieval.models import CURRENT, Embedding, Encoder, Learning, Unembeddable

METRIC_KIND, OWN_KIND = "metric_embed", "encoder_embed"


def mapped(encoder: Encoder, vectors: ArrayF32) -> ArrayF32:
    """Vectors (N, D) of an encoder's base as the lab's own encoder has them.

    Raises:
        WeightsError: its weights are gone or damaged.
    """
    return vectors @ _matrix(encoder.pk, encoder.dim)


@lru_cache(maxsize=32)  # labs at work at once; a quarter of a megabyte each at 256 dimensions
def _matrix(encoder_id: uuid.UUID, dim: int) -> ArrayF32:
    """Weights never change: a new map is another encoder."""
    return matrix_of_bytes(own_weights(encoder_id), dim)


def own_weights(encoder_id: uuid.UUID) -> bytes:
    """The safetensors file of a lab's own encoder; empty if it is gone."""
    rows = Learning.everything.filter(encoder=encoder_id)
    return bytes(rows.values_list("weights", flat=True).first() or b"")


def encoders_to_keep_up(base: Encoder, lab_id: uuid.UUID) -> list[Encoder]:
    """A lab's own encoders, in use or about to be, that follow new vectors of their base."""
    if base.lab_id is not None:
        return []
    rows = Encoder.objects.filter(lab_id=lab_id, base=base)
    return list(rows.filter(Q(is_default=True) | Q(is_next=True)).order_by("pk"))


def embeddings_to_map(encoder: Encoder) -> QuerySet[Embedding]:
    """Current vectors of the base, on canvases in the bin too, that a lab's own has yet to map.

    Of one that reads pixels: whose regions it has yet to embed, and can; none in the bin.
    """
    own = Embedding.everything.filter(
        CURRENT,
        encoder=encoder,
        roi=OuterRef("roi_id"),
        roi_version=OuterRef("roi_version"),
    )
    base = _of_base(encoder)
    if encoder.is_trained:
        hopeless = Unembeddable.objects.filter(encoder=encoder, roi=OuterRef("roi_id"))
        base = base.filter(~Exists(hopeless))
    return base.filter(~Exists(own)).order_by("pk")


def rois_to_own(encoder: Encoder, most: int) -> list[Roi]:
    """For a task: the next regions of one canvas that a lab's own encoder has yet to embed."""
    rows = embeddings_to_map(encoder)
    first = rows.first()
    if first is None:
        return []
    keys = rows.filter(canvas=first.canvas_id).values_list("roi_id", flat=True)[:most]
    rois = Roi.everything.select_related("canvas", "lab").filter(pk__in=list(keys))
    return list(rois.order_by("frame_pts", "top", "left", "pk"))


def _of_base(encoder: Encoder) -> QuerySet[Embedding]:
    rows = Embedding.everything.filter(CURRENT, lab=encoder.lab, encoder=encoder.base_id)
    return Embedding.shown(rows) if encoder.is_trained else rows


def map_progress(encoder: Encoder) -> tuple[int, int]:
    """How many of the base's current vectors are mapped, and of how many."""
    total = _of_base(encoder).count()
    return total - embeddings_to_map(encoder).count(), total


def own_job_open(encoder: Encoder) -> Job | None:
    """The job that embeds the archive with it, where one has not ended."""
    jobs = Job.objects.filter(kind__in=(METRIC_KIND, OWN_KIND), args__encoder_id=str(encoder.pk))
    return jobs.exclude(state__in=ENDED).order_by("-created_at").first()
