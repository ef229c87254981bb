"""What is not annotated yet: images without a region, and tissue that looks like none drawn."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np
from django.db.models import Count, Exists, OuterRef

from ml.index.maps import nearest_distances
from ml.types import ArrayF32
from portal.annotations.models import Roi
from portal.archive.models import Canvas, CanvasKind
from portal.labs.models import Lab, User
from portal.retrieval.models import (
    CANVASES_OF,
    CURRENT,
    Embedding,
    Encoder,
    EncoderKind,
    TissueSample,
)
from portal.retrieval.selectors.browse.maps import reach_of
from portal.retrieval.selectors.embeddings import ids_of_rows, vectors_by_id
from portal.retrieval.selectors.hits import calibration_for

KNOWN_MOST = 20_000
"""Regions that squares are compared with, the newest: a page is answered within a second."""
SQUARES_MOST = 200  # of a slide: a share of this many is known to within 7 percent
SLIDES_MOST = 12  # samples that are compared, the newest


@dataclass(frozen=True, slots=True)
class Novelty:
    """Of squares of a slide's tissue, how many look like no region drawn anywhere in the lab."""

    unknown: int
    squares: int

    @property
    def percent(self) -> int:
        """0 to 100."""
        return round(100 * self.unknown / self.squares) if self.squares else 0


@dataclass(frozen=True, slots=True)
class Unannotated:
    """An image that may be worth drawing on.

    Attributes:
        regions: that the person may see on it. novelty: None if it was not looked through.
    """

    canvas: Canvas
    regions: int
    novelty: Novelty | None


@dataclass(frozen=True, slots=True)
class UnannotatedPage:
    """Images, those whose tissue is most unlike all regions first, then those without a region.

    Attributes:
        total: of all pages. without: images without a region that the person may see, of ``images``
            of this kind. looked_through: of those listed.
        compared: regions that squares were compared with.
    """

    found: tuple[Unannotated, ...]
    total: int
    without: int
    images: int
    looked_through: int
    compared: int


def unannotated(
    user: User, *, lab: Lab, kind: EncoderKind, encoder: Encoder | None, start: int, count: int
) -> UnannotatedPage:
    """A page of images of a lab that have no region yet, or tissue that is unlike all of them."""
    regions = Roi.objects.live().owned_by(user).filter(canvas=OuterRef("pk"))
    canvases = Canvas.objects.filter(lab=lab, kind__in=CANVASES_OF[kind])
    empty = canvases.filter(~Exists(regions)).order_by("-created_at", "pk")
    novelty, compared = _novelty(user, lab, encoder) if encoder else ({}, 0)
    looked = sorted(novelty, key=lambda pk: (-novelty[pk].percent, str(pk)))
    rest = empty.exclude(pk__in=looked)
    without = empty.count()
    total = len(looked) + rest.count()
    chosen = list(looked[start : start + count])
    more = count - len(chosen)
    after = max(start - len(looked), 0)
    if more > 0:
        chosen += list(rest.values_list("pk", flat=True)[after : after + more])
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
        )
        .select_related("encoder")
        .order_by("-created_at", "pk")[:SLIDES_MOST]
    )
    rows = list(samples)
    if not rows:
        return {}, 0
    known = Embedding.objects.owned_by(user).filter(CURRENT, lab=lab, encoder=encoder)
    known = known.filter(roi__deleted_at__isnull=True)
    ids, vectors = vectors_by_id(ids_of_rows(known.order_by("-pk")[:KNOWN_MOST]), dim=encoder.dim)
    radius = _radius(encoder, len(ids))
    found: dict[uuid.UUID, Novelty] = {}
    for row in rows:
        squares = _some(row)
        if row.canvas_id in found or not len(squares):
            continue
        far = nearest_distances(squares, vectors) > radius
        found[row.canvas_id] = Novelty(int(far.sum()), len(far))
    return found, len(ids)


def _radius(encoder: Encoder, known: int) -> float:
    """Squares farther than this look like no region; infinite without a calibration."""
    calibration = calibration_for(encoder)
    return reach_of(calibration, max(known, 1)) if calibration else float("inf")


def _some(sample: TissueSample) -> ArrayF32:
    """At most ``SQUARES_MOST`` of its vectors, evenly over them."""
    vectors = np.frombuffer(bytes(sample.vectors), dtype="<f4").reshape(-1, sample.encoder.dim)
    step = max(1, -(-len(vectors) // SQUARES_MOST))
    return np.ascontiguousarray(vectors[::step], dtype=np.float32)


def _counts(user: User, canvas_ids: list[uuid.UUID]) -> dict[uuid.UUID, int]:
    rows = Roi.objects.live().owned_by(user).filter(canvas__in=canvas_ids).order_by()
    return dict(rows.values_list("canvas_id").annotate(n=Count("pk")))
