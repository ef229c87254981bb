"""Images to annotate next: without a region, or with tissue unlike all regions."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np
from django.db.models import Count, Exists, OuterRef

from ml.index.layout.pairs import nearest_distances
from ml.types import ArrayF32
from portal.annotations.models import Roi
from portal.archive.models import Canvas, CanvasKind, Modality
from portal.embeddings.models import CURRENT, Embedding, Encoder
from portal.embeddings.selectors.embeddings import ids_of_rows, vectors_by_id
from portal.explore.models import TissueSample
from portal.explore.selectors.maps import close_distance
from portal.labs.models import Lab, User
from portal.search.selectors.hits import calibration_for

MAX_KNOWN = 20_000
"""Largest number of regions compared with squares, newest first: takes less than a second."""
MAX_SQUARES = 200  # per slide: estimates a share to within 7 percent
MAX_SLIDES = 12  # newest samples


@dataclass(frozen=True, slots=True)
class Novelty:
    """Number of a slide's tissue squares that are unlike all regions of the lab."""

    unknown: int
    squares: int

    @property
    def percent(self) -> int:
        """Percentage, 0 to 100."""
        return round(100 * self.unknown / self.squares) if self.squares else 0


@dataclass(frozen=True, slots=True)
class Unannotated:
    """Image worth annotating.

    Attributes:
        regions: Number of its regions visible to the person.
        novelty: None if its tissue was not sampled.
    """

    canvas: Canvas
    regions: int
    novelty: Novelty | None


@dataclass(frozen=True, slots=True)
class UnannotatedPage:
    """Images ordered by unknown tissue, then images without a region.

    Attributes:
        total: Number of images on all pages.
        without: Images without a visible region, among ``images`` of this kind.
        looked_through: Number of listed images with a sample.
        compared: Number of regions that squares were compared with.
    """

    found: tuple[Unannotated, ...]
    total: int
    without: int
    images: int
    looked_through: int
    compared: int


def unannotated(
    user: User, *, lab: Lab, kind: Modality, encoder: Encoder | None, start: int, count: int
) -> UnannotatedPage:
    """Page of images of a lab without a region, or with tissue unlike all regions."""
    regions = Roi.objects.live().owned_by(user).filter(canvas=OuterRef("pk"))
    canvases = Canvas.objects.filter(lab=lab, modality=kind)
    empty = canvases.filter(~Exists(regions)).order_by("-created_at", "pk")
    novelty, compared = _novelty(user, lab, encoder) if encoder else ({}, 0)
    looked = sorted(novelty, key=lambda pk: (-novelty[pk].percent, str(pk)))
    unexamined = empty.exclude(pk__in=looked)
    without = empty.count()
    total = len(looked) + unexamined.count()
    chosen = list(looked[start : start + count])
    unlisted_count = count - len(chosen)
    after = max(start - len(looked), 0)
    if unlisted_count > 0:
        chosen += list(unexamined.values_list("pk", flat=True)[after : after + unlisted_count])
    rows = Canvas.objects.filter(pk__in=chosen).select_related("case").defer("levels").in_bulk()
    counts = _counts(user, chosen)
    return UnannotatedPage(
        tuple(
            Unannotated(rows[pk], counts.get(pk, 0), novelty.get(pk)) for pk in chosen if pk in rows
        ),
        total,
        without,
        canvases.count(),
        len(looked),
        compared,
    )


def _novelty(user: User, lab: Lab, encoder: Encoder) -> tuple[dict[uuid.UUID, Novelty], int]:
    samples = (
        TissueSample.objects.owned_by(user)
        .filter(
            lab=lab,
            encoder=encoder,
            is_complete=True,
            canvas__kind__in=(CanvasKind.SLIDE, CanvasKind.STILL),
            canvas__modality=Modality.HISTOLOGY,
        )
        .select_related("encoder")
        .order_by("-created_at", "pk")[:MAX_SLIDES]
    )
    rows = list(samples)
    if not rows:
        return {}, 0
    embeddings = Embedding.objects.owned_by(user).filter(CURRENT, lab=lab, encoder=encoder)
    embeddings = embeddings.filter(roi__deleted_at__isnull=True)
    ids, vectors = vectors_by_id(
        ids_of_rows(embeddings.order_by("-pk")[:MAX_KNOWN]), dim=encoder.dim
    )
    radius = _radius(encoder, len(ids))
    novelty_of_canvas: dict[uuid.UUID, Novelty] = {}
    for row in rows:
        squares = _subsample(row)
        if row.canvas_id in novelty_of_canvas or not len(squares):
            continue
        is_far = nearest_distances(squares, vectors) > radius
        novelty_of_canvas[row.canvas_id] = Novelty(int(is_far.sum()), len(is_far))
    return novelty_of_canvas, len(ids)


def _radius(encoder: Encoder, embedding_count: int) -> float:
    """Distance beyond which a square looks like no region; infinite without a calibration."""
    calibration = calibration_for(encoder)
    return close_distance(calibration, max(embedding_count, 1)) if calibration else float("inf")


def _subsample(sample: TissueSample) -> ArrayF32:
    """Evenly spaced sample of at most ``MAX_SQUARES`` vectors."""
    vectors = np.frombuffer(bytes(sample.vectors), dtype="<f4").reshape(-1, sample.encoder.dim)
    step = max(1, -(-len(vectors) // MAX_SQUARES))
    return np.ascontiguousarray(vectors[::step], dtype=np.float32)


def _counts(user: User, canvas_ids: list[uuid.UUID]) -> dict[uuid.UUID, int]:
    rows = Roi.objects.live().owned_by(user).filter(canvas__in=canvas_ids).order_by()
    return dict(rows.values_list("canvas_id").annotate(n=Count("pk")))
