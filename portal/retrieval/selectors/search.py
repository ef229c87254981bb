"""Similar cases of an ROI: permission, then search, then an exact merge of what is newer.

The scope of a search is the lab of its ROI: nothing crosses labs. The index file of that lab and
encoder is searched with everything that may not come back given to the search itself (embeddings
no longer current, the same patient's, those outside a filter). What is newer than the file is
searched exactly from the database. So the answer is that of a search over all current embeddings.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from ml.errors import MlError
from ml.index import exact_merge, exact_search
from ml.index.calibration import Calibration, calibration_of
from ml.index.exact import Found
from ml.types import ArrayI64
from portal.annotations.models import Label, Roi
from portal.core.errors import ConflictError, InvalidInputError
from portal.labs.models import User
from portal.retrieval.indexes import Scope
from portal.retrieval.models import Embedding, Encoder, IndexSnapshot
from portal.retrieval.selectors.candidates import (
    hits_of,
    ids_masked,
    ids_matching,
    ids_newer,
    ids_of_patient,
)
from portal.retrieval.selectors.embeddings import embedding_current, ids_missing, vector_of
from portal.retrieval.selectors.readers import deltas, readers
from portal.retrieval.selectors.snapshots import snapshot_latest

K_MOST = 200  # what a page can show; more belongs into an export

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


@dataclass(frozen=True, slots=True)
class SimilarQuery:
    """What is asked.

    Attributes:
        roi: seen by the person who asks, with its canvas and case.
        k: how many hits, 1 to 200.
        exclude_same_patient: leave out ROIs of the patient (of the case, where the patient is not
            known). The ROI itself never comes back.
        organ, label_id, kind: only hits of this organ, label, kind of canvas; empty for any.
    """

    roi: Roi
    encoder: Encoder
    k: int = 20
    exclude_same_patient: bool = True
    organ: str = ""
    label_id: uuid.UUID | None = None
    kind: str = ""

    @property
    def has_filter(self) -> bool:
        """True where organ, label or kind narrow the search."""
        return bool(self.organ or self.label_id or self.kind)


@dataclass(frozen=True, slots=True)
class Hit:
    """One similar ROI.

    Attributes:
        distance: Euclidean, between the vectors.
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
class IndexUsed:
    """What was searched, so that an answer can be repeated.

    Attributes:
        version, snapshot_id: of the index file; 0 and None where all came from the database.
        in_file: vectors in the file. newer: searched exactly beside it. masked: left out of it.
        last_embedding_id: the newest embedding that took part.
    """

    version: int
    snapshot_id: uuid.UUID | None
    in_file: int
    newer: int
    masked: int
    last_embedding_id: int


@dataclass(frozen=True, slots=True)
class SimilarResult:
    """Hits, nearest first, ties by embedding id; and what they came from."""

    query: SimilarQuery
    embedding_id: int
    roi_version: int
    hits: tuple[Hit, ...]
    votes: tuple[LabelVote, ...]
    index: IndexUsed

    @property
    def says_nothing_close(self) -> bool:
        """True where there are hits, and by the encoder's calibration none of them is close."""
        return bool(self.hits) and all(hit.is_close is False for hit in self.hits)


def similar_search(user: User, query: SimilarQuery) -> SimilarResult:
    """The ROIs most similar to one that the person may see.

    Raises:
        ConflictError: the ROI is deleted.
        NotEmbeddedError: its present outline has no vector by this encoder yet.
        InvalidInputError: ``k`` outside of 1 to 200.
    """
    _check(query)
    embedding = embedding_current(roi=query.roi, encoder=query.encoder)
    if embedding is None:
        raise NotEmbeddedError("This ROI is still being embedded. Try again in a moment.")
    found, used = _nearest_present(query, embedding)
    rows = hits_of(user, found[0])
    ranked = [
        (rows[int(pk)], float(distance))
        for pk, distance in zip(*found, strict=True)
        if int(pk) in rows
    ]
    calibration = _calibration(query.encoder)
    hits = tuple(
        _hit(rank, row, distance, calibration)
        for rank, (row, distance) in enumerate(ranked, start=1)
    )
    return SimilarResult(query, embedding.pk, embedding.roi_version, hits, label_votes(hits), used)


def label_votes(hits: tuple[Hit, ...]) -> tuple[LabelVote, ...]:
    """The hits' labels, most frequent first; of equal ones that of the nearer hit first."""
    labels = {hit.roi.label_id: hit.roi.label for hit in hits}
    counts = Counter(hit.roi.label_id for hit in hits)
    return tuple(
        LabelVote(labels[label_id], count, count / len(hits))
        for label_id, count in counts.most_common()
    )


def _hit(rank: int, row: Embedding, distance: float, calibration: Calibration | None) -> Hit:
    if calibration is None:
        return Hit(rank, distance, row.pk, row.roi)
    is_close = not calibration.says_nothing_close(distance)
    return Hit(rank, distance, row.pk, row.roi, calibration.p_value(distance), is_close)


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
    if query.roi.deleted_at is not None:
        raise ConflictError("This ROI is deleted. Restore it first.", code="roi-deleted")


def _nearest_present(query: SimilarQuery, embedding: Embedding) -> tuple[Found, IndexUsed]:
    """The search, without what was deleted with its canvas after the index file was written.

    No row is left of it that could mask it. Others take its place: k hits stay k hits.
    """
    gone = np.empty(0, dtype=np.int64)
    while True:
        found, used = _nearest(query, embedding, gone)
        missing = ids_missing(found[0])
        if not len(missing):
            return found, used
        gone = np.concatenate([gone, missing])


def _nearest(query: SimilarQuery, embedding: Embedding, gone: ArrayI64) -> tuple[Found, IndexUsed]:
    """The search proper. The order of reads matters: the snapshot, then what changed since."""
    scope = Scope(query.encoder, query.roi.lab_id)
    snapshot = snapshot_latest(scope)
    index = readers.get(snapshot, query.encoder) if snapshot else None
    if index is None:
        snapshot = None
    masked = ids_masked(scope, snapshot)
    excluded = np.concatenate([masked, gone, _excluded(query, scope, embedding)])
    allowed = _allowed(query, scope)
    newer_ids, newer = deltas.get(scope, ids_newer(scope, snapshot))
    vector = vector_of(embedding)
    parts = [exact_search(vector, newer_ids, newer, query.k, allowed=allowed, excluded=excluded)]
    if index is not None:
        parts.append(index.search(vector, query.k, allowed=allowed, excluded=excluded))
    return exact_merge(parts, query.k), _used(snapshot, newer_ids, masked)


def _excluded(query: SimilarQuery, scope: Scope, embedding: Embedding) -> ArrayI64:
    own = np.array([embedding.pk], dtype=np.int64)
    if not query.exclude_same_patient:
        return own
    return np.concatenate([own, ids_of_patient(scope, query.roi.canvas.case)])


def _allowed(query: SimilarQuery, scope: Scope) -> ArrayI64 | None:
    if not query.has_filter:
        return None
    return ids_matching(scope, organ=query.organ, label_id=query.label_id, kind=query.kind)


def _used(snapshot: IndexSnapshot | None, newer_ids: ArrayI64, masked: ArrayI64) -> IndexUsed:
    last = snapshot.last_embedding_id if snapshot else 0
    return IndexUsed(
        version=snapshot.version if snapshot else 0,
        snapshot_id=snapshot.pk if snapshot else None,
        in_file=snapshot.count if snapshot else 0,
        newer=len(newer_ids),
        masked=len(masked),
        last_embedding_id=max([last, *newer_ids[-1:].tolist()]),
    )
