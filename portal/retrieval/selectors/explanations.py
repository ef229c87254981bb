"""Why regions were found: what was worked out for two of them, and from what."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import QuerySet

from ml.types import JsonObject
from portal.annotations.models import Roi
from portal.core.errors import InvalidInputError, NotFoundError
from portal.labs.models import User
from portal.retrieval.models import (
    CURRENT,
    EMBEDDED_SOURCES,
    Embedding,
    Encoder,
    Explanation,
    Query,
)
from portal.retrieval.selectors.embeddings import embedding_current
from portal.retrieval.selectors.queries import NotEmbeddedError

EXPLAIN_KIND = "match_explain"
NO_POINTS = "No common key points: similar by appearance only."
Point = tuple[float, float]
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class PairFound:
    """Two patches that match, see ``ml.roi.explain.Pair``."""

    a: int
    b: int
    adds: float
    share: float


@dataclass(frozen=True, slots=True)
class MatchFound:
    """Why two regions are alike: what was searched with comes first, the hit second.

    Attributes:
        boxes_a, boxes_b: of patches, in level-0 pixels (of a picture: of what is kept of it).
        adds_a, adds_b: what each adds to ``similarity``, which is the sum of either.
        half_a, half_b: smallest share of the patches that adds half of what speaks for it.
        colour: share of the tissue that has the same colours.
        normalises: the encoder brings both to one stain before it looks. other_distance: with
            stain treated the other way; None if that was not possible, as ``other_note`` says.
        points_a, points_b: key points that match, among ``of_a`` and ``of_b``; endoscopy only.
        views: pairs of sizes at which they were compared.
    """

    similarity: float | None = None
    distance: float | None = None
    boxes_a: tuple[Box, ...] = ()
    boxes_b: tuple[Box, ...] = ()
    adds_a: tuple[float, ...] = ()
    adds_b: tuple[float, ...] = ()
    pairs: tuple[PairFound, ...] = ()
    half_a: float = 0.0
    half_b: float = 0.0
    colour: float | None = None
    normalises: bool = False
    other_distance: float | None = None
    other_note: str = ""
    points_a: tuple[Point, ...] = ()
    points_b: tuple[Point, ...] = ()
    of_a: int = 0
    of_b: int = 0
    views: int = 1

    @property
    def is_of_points(self) -> bool:
        """Key points were matched, not patches."""
        return self.similarity is None

    @property
    def note(self) -> str:
        """Says that there is nothing to draw; empty if there is something."""
        return NO_POINTS if self.is_of_points and not self.points_a else ""

    def as_json(self) -> JsonObject:
        """As ``Explanation.result`` holds it."""
        return asdict(self)

    @classmethod
    def of_json(cls, said: dict[str, Any]) -> MatchFound:
        """What ``as_json`` gave."""
        lists = {name: tuple(value) for name, value in said.items() if isinstance(value, list)}
        pairs = tuple(PairFound(**pair) for pair in said.get("pairs", ()))
        return cls(**said | lists | {"pairs": pairs})


def match_of(row: Explanation) -> MatchFound | None:
    """What was found, or None while it is being worked out."""
    return None if row.result is None else MatchFound.of_json(row.result)


def hit_embedding(
    user: User, other: Roi, encoder_id: uuid.UUID | None, *, roi: Roi | None = None
) -> Embedding:
    """The vector that a region was found by.

    Args:
        other: seen by ``user``, of the lab that is searched. roi: that is searched with.
    Raises:
        NotFoundError: it has none, so that it cannot be a hit; or it is what is searched with.
    """
    rows = Embedding.objects.owned_by(user).filter(CURRENT, encoder=encoder_id, roi=other)
    found: Embedding | None = rows.order_by().first()
    if found is None or (roi is not None and roi.pk == other.pk):
        raise NotFoundError("This region was not found by such a search.")
    return found


def embedding_searched_with(roi: Roi, encoder: Encoder | None) -> Embedding:
    """The vector of an ROI that is searched with; raises ``NotEmbeddedError``."""
    found = embedding_current(roi=roi, encoder=encoder) if encoder else None
    if found is None:
        raise NotEmbeddedError("This ROI is still being embedded. Search with it first.")
    return found


def require_pixels(query: Query) -> None:
    """Only what has pixels of its own can be laid beside a hit.

    Raises:
        InvalidInputError: a query of examples or of a slide's ROIs.
        NotEmbeddedError: it is not embedded yet.
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
    """For a task: the row with both regions, or None if one of them is gone."""
    found: Explanation | None = _joined().filter(pk=explanation_id).first()
    return found


def explanations_of(user: User) -> QuerySet[Explanation]:
    """Those that a person may see; they are looked up by what they explain."""
    rows: QuerySet[Explanation] = Explanation.objects.owned_by(user).select_related("job")
    return rows


def _joined() -> QuerySet[Explanation]:
    return Explanation.objects.select_related(
        "embedding__roi__canvas__lab", "query__canvas__lab", "hit__roi__canvas__lab", "hit__encoder"
    )
