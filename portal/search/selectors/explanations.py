"""Stored explanations of matches, and their inputs."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import QuerySet

from ml.types import JsonObject
from portal.annotations.models import Roi
from portal.core.errors import InvalidInputError, NotFoundError
from portal.embeddings.models import CURRENT, Embedding, Encoder
from portal.embeddings.selectors.embeddings import embedding_current
from portal.labs.models import User
from portal.search.models import EMBEDDED_SOURCES, Explanation, Query
from portal.search.selectors.queries import NotEmbeddedError

EXPLAIN_KIND = "match_explain"
NO_POINTS = "No common key points: similar by appearance only."
Point = tuple[float, float]
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class MatchedPair:
    """Two patches that match, see ``ml.roi.explain.pairs.Pair``."""

    a: int
    b: int
    contribution: float
    share: float


@dataclass(frozen=True, slots=True)
class MatchExplanation:
    """Explanation of a match; ``a`` is the query, ``b`` the hit.

    Attributes:
        boxes_a, boxes_b: Patches in level-0 pixels (for a picture: in pixels of its stored copy).
        contributions_a, contributions_b: Contribution of each patch to ``similarity``, which is
            the sum of either.
        half_a, half_b: Smallest share of the patches that contributes half of the positive
            evidence.
        colour: Share of the tissue with the same colours.
        normalises: Whether the encoder normalises the stain.
        other_distance: Distance with stain treated the other way; None if impossible, see
            ``other_note``.
        points_a, points_b: Matching key points, among ``keypoint_count_a`` and
            ``keypoint_count_b``; endoscopy only.
        views: Number of compared pairs of sizes.
    """

    similarity: float | None = None
    distance: float | None = None
    boxes_a: tuple[Box, ...] = ()
    boxes_b: tuple[Box, ...] = ()
    contributions_a: tuple[float, ...] = ()
    contributions_b: tuple[float, ...] = ()
    pairs: tuple[MatchedPair, ...] = ()
    half_a: float = 0.0
    half_b: float = 0.0
    colour: float | None = None
    normalises: bool = False
    other_distance: float | None = None
    other_note: str = ""
    points_a: tuple[Point, ...] = ()
    points_b: tuple[Point, ...] = ()
    keypoint_count_a: int = 0
    keypoint_count_b: int = 0
    views: int = 1

    @property
    def is_of_points(self) -> bool:
        """True if key points were matched, not patches."""
        return self.similarity is None

    @property
    def note(self) -> str:
        """Text if there is nothing to draw, else empty."""
        return NO_POINTS if self.is_of_points and not self.points_a else ""

    def as_json(self) -> JsonObject:
        """Convert to the JSON stored in ``Explanation.result``."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> MatchExplanation:
        """Restore from the output of ``as_json``."""
        lists = {name: tuple(value) for name, value in data.items() if isinstance(value, list)}
        pairs = tuple(MatchedPair(**pair) for pair in data.get("pairs", ()))
        return cls(**data | lists | {"pairs": pairs})


def explanation_result(row: Explanation) -> MatchExplanation | None:
    """Result of an explanation, or None while it is being computed."""
    return None if row.result is None else MatchExplanation.from_json(row.result)


def hit_embedding(
    user: User, other: Roi, encoder_id: uuid.UUID | None, *, roi: Roi | None = None
) -> Embedding:
    """Vector by which a region was found.

    Args:
        other: Region visible to ``user``, in the searched lab.
        roi: ROI searched with.
    Raises:
        NotFoundError: The region has no vector, or is the ROI itself.
    """
    rows = Embedding.objects.owned_by(user).filter(CURRENT, encoder=encoder_id, roi=other)
    embedding: Embedding | None = rows.order_by().first()
    if embedding is None or (roi is not None and roi.pk == other.pk):
        raise NotFoundError("This region was not found by such a search.")
    return embedding


def embedding_searched_with(roi: Roi, encoder: Encoder | None) -> Embedding:
    """Vector of the ROI searched with; raises ``NotEmbeddedError``."""
    embedding = embedding_current(roi=roi, encoder=encoder) if encoder else None
    if embedding is None:
        raise NotEmbeddedError("This region is still being embedded. Search with it first.")
    return embedding


def require_pixels(query: Query) -> None:
    """Check that the query has pixels, which a comparison with a hit needs.

    Raises:
        InvalidInputError: A query of examples or of a slide's ROIs.
        NotEmbeddedError: The query is not embedded yet.
    """
    if query.source not in EMBEDDED_SOURCES:
        raise InvalidInputError(
            "This search uses several regions together. Search with one of them to see why it "
            "finds another.",
            code="nothing-to-explain",
        )
    if query.vector is None:
        raise NotEmbeddedError("This query is still being embedded. Try again in a moment.")


def explanation_to_make(explanation_id: uuid.UUID) -> Explanation | None:
    """The row with both regions, or None if one was deleted (for tasks)."""
    explanation: Explanation | None = _with_regions().filter(pk=explanation_id).first()
    return explanation


def _with_regions() -> QuerySet[Explanation]:
    return Explanation.objects.select_related(
        "embedding__roi__canvas__lab", "query__canvas__lab", "hit__roi__canvas__lab", "hit__encoder"
    )
