"""Similar cases of an ROI: permission, then search, then what a page shows of each hit.

The scope of a search is the lab of its ROI: nothing crosses labs. ``nearest`` searches.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from ml.errors import MlError
from ml.index.calibration import Calibration, calibration_of
from portal.annotations.models import Label, Roi
from portal.core.errors import ConflictError, InvalidInputError
from portal.labs.models import User
from portal.retrieval.indexes import Scope
from portal.retrieval.models import Embedding, Encoder
from portal.retrieval.selectors.candidates import hits_of, ids_matching, ids_of_patient
from portal.retrieval.selectors.embeddings import embedding_current, vector_of
from portal.retrieval.selectors.nearest import Candidates, IndexUsed, Ranking

K_MOST = 200  # what a page can show; more belongs into an export
EXPAND_MOST = 10  # beyond the few nearest, what is found is no longer surely alike

logger = logging.getLogger(__name__)


class NotEmbeddedError(ConflictError):
    """The ROI has no vector of its present outline yet."""

    code = "roi-not-embedded"


class SimilarFilters(TypedDict, total=False):
    """What narrows a search; see ``SimilarQuery``."""

    k: int
    exclude_same_patient: bool
    organ: str
    label_id: uuid.UUID | None
    kind: str
    expand: int


@dataclass(frozen=True, slots=True)
class SimilarQuery:
    """What is asked.

    Attributes:
        roi: seen by the person who asks, with its canvas and case.
        k: how many hits, 1 to 200.
        exclude_same_patient: leave out ROIs of the patient (of the case, where the patient is not
            known). The ROI itself never comes back.
        organ, label_id, kind: only hits of this organ, label, kind of canvas; empty for any.
        expand: by how many of its nearest the query is expanded, 0 to 10; 0 orders by distance
            alone. Each pass finds only what the filters and the patient allow.
    """

    roi: Roi
    encoder: Encoder
    k: int = 20
    exclude_same_patient: bool = True
    organ: str = ""
    label_id: uuid.UUID | None = None
    kind: str = ""
    expand: int = 0

    @property
    def has_filter(self) -> bool:
        """True where organ, label or kind narrow the search."""
        return bool(self.organ or self.label_id or self.kind)


@dataclass(frozen=True, slots=True)
class Hit:
    """One similar ROI.

    Attributes:
        distance: Euclidean, between the vectors of the two ROIs, however the hits are ordered.
        p_value: share of unrelated regions that come as close; None where the encoder is not
            calibrated.
        is_close: nearer than unrelated regions usually are; None as ``p_value``.
    """

    rank: int
    distance: float
    embedding_id: int
    roi: Roi
    p_value: float | None = None
    is_close: bool | None = None


@dataclass(frozen=True, slots=True)
class LabelVote:
    """How many of the hits carry a label (None: no label), and their share."""

    label: Label | None
    count: int
    share: float


@dataclass(frozen=True, slots=True)
class SimilarResult:
    """Hits, the best first, ties by embedding id; and what they came from.

    Attributes:
        expanded_by: embeddings that the query was expanded by; none where the hits are in the order
            of their distances.
        says_nothing_close: there are hits, and by the encoder's calibration not even the nearest of
            what may be found is close to the ROI itself.
    """

    query: SimilarQuery
    embedding_id: int
    roi_version: int
    hits: tuple[Hit, ...]
    votes: tuple[LabelVote, ...]
    index: IndexUsed
    expanded_by: tuple[int, ...]
    says_nothing_close: bool


def similar_search(user: User, query: SimilarQuery) -> SimilarResult:
    """The ROIs most similar to one that the person may see.

    Raises:
        ConflictError: the ROI is deleted.
        NotEmbeddedError: its present outline has no vector by this encoder yet.
        InvalidInputError: ``k`` outside of 1 to 200, or ``expand`` of 0 to 10.
    """
    _check(query)
    embedding = embedding_current(roi=query.roi, encoder=query.encoder)
    if embedding is None:
        raise NotEmbeddedError("This ROI is still being embedded. Try again in a moment.")
    candidates = _candidates(query, embedding)
    found = candidates.ranked(vector_of(embedding), query.k, expand=query.expand)
    calibration = _calibration(query.encoder)
    hits = _hits(user, found, calibration)
    return SimilarResult(
        query,
        embedding.pk,
        embedding.roi_version,
        hits,
        label_votes(hits),
        candidates.used,
        found.expanded_by,
        says_nothing_close=bool(hits) and _is_close(found.nearest, calibration) is False,
    )


def label_votes(hits: tuple[Hit, ...]) -> tuple[LabelVote, ...]:
    """The hits' labels, most frequent first; of equal ones that of the nearer hit first."""
    labels = {hit.roi.label_id: hit.roi.label for hit in hits}
    counts = Counter(hit.roi.label_id for hit in hits)
    return tuple(
        LabelVote(labels[label_id], count, count / len(hits))
        for label_id, count in counts.most_common()
    )


def _hits(user: User, found: Ranking, calibration: Calibration | None) -> tuple[Hit, ...]:
    rows = hits_of(user, found.ids)
    ranked = [
        (rows[pk], distance)
        for pk, distance in zip(found.ids.tolist(), found.distance.tolist(), strict=True)
        if pk in rows
    ]
    return tuple(
        Hit(
            rank,
            distance,
            row.pk,
            row.roi,
            p_value=None if calibration is None else calibration.p_value(distance),
            is_close=_is_close(distance, calibration),
        )
        for rank, (row, distance) in enumerate(ranked, start=1)
    )


def _is_close(distance: float | None, calibration: Calibration | None) -> bool | None:
    if distance is None or calibration is None:
        return None
    return not calibration.says_nothing_close(distance)


def _calibration(encoder: Encoder) -> Calibration | None:
    """What the encoder's distances mean; without a readable file, none is claimed."""
    try:
        return calibration_of(encoder.config_hash)
    except MlError:
        logger.exception("The calibration of %s cannot be read", encoder)
        return None


def _check(query: SimilarQuery) -> None:
    if not 1 <= query.k <= K_MOST:
        raise InvalidInputError(f"k: a whole number from 1 to {K_MOST}, not {query.k}.")
    if not 0 <= query.expand <= EXPAND_MOST:
        raise InvalidInputError(
            f"expand: a whole number from 0 to {EXPAND_MOST}, not {query.expand}."
        )
    if query.roi.deleted_at is not None:
        raise ConflictError("This ROI is deleted. Restore it first.", code="roi-deleted")


def _candidates(query: SimilarQuery, embedding: Embedding) -> Candidates:
    scope = Scope(query.encoder, query.roi.lab_id)
    found = Candidates(scope)
    found.exclude(np.array([embedding.pk], dtype=np.int64))
    if query.exclude_same_patient:
        found.exclude(ids_of_patient(scope, query.roi.canvas.case))
    if query.has_filter:
        found.allow_only(
            ids_matching(scope, organ=query.organ, label_id=query.label_id, kind=query.kind)
        )
    return found
