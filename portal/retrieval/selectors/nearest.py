"""The nearest embeddings of a vector: what may be found, the index file, and what is newer.

The index file of a lab and encoder is searched with everything that may not come back given to the
search itself (embeddings no longer current, the same patient's, those outside a filter). What is
newer than the file is searched exactly from the database. So the answer is that of a search over
all current embeddings.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, replace

import numpy as np

from ml.errors import IndexUnreachableError
from ml.index import Selection, VectorIndex, exact_merge, exact_search
from ml.index.answers.diffusion import DiffusionConfig, diffused_distances
from ml.index.answers.expansion import expanded_query, refined_query
from ml.index.exact import Found, exact_distances
from ml.types import ArrayF32, ArrayF64, ArrayI64
from portal.retrieval.indexes import Scope
from portal.retrieval.models import IndexSnapshot
from portal.retrieval.selectors.candidates import ids_masked, ids_newer
from portal.retrieval.selectors.embeddings import vectors_by_id
from portal.retrieval.selectors.files.readers import deltas, readers, selections
from portal.retrieval.selectors.files.snapshots import snapshot_latest

DIFFUSION = DiffusionConfig()
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexUsed:
    """What was searched, so that an answer can be repeated.

    Attributes:
        version, snapshot_id: of the index file; 0 and None if all came from the database.
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
class Ranking:
    """What was found for a vector, the best first.

    Attributes:
        ids: (N,) embeddings. distance: (N,) of each to the vector asked with.
        nearest: distance of the nearest that may be found; None if there is none.
        expanded_by: embeddings that the query was expanded by, the nearest first; then ``ids`` are
            ordered by the distance to the expanded query, and ``distance`` need not ascend; the
            same where examples moved the query, or where the order is that of diffusion.
    """

    ids: ArrayI64
    distance: ArrayF64
    nearest: float | None
    expanded_by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Examples:
    """Vectors of what a person wants more of, (L, D), and of what they do not, (U, D)."""

    liked: ArrayF32
    unliked: ArrayF32


class Candidates:
    """What one search may find, the same for each of its passes.

    The order of reads matters: the snapshot, then what changed since, then (by the caller) what is
    left out, so that nothing newer than the exclusion takes part.
    """

    def __init__(self, scope: Scope) -> None:
        snapshot = snapshot_latest(scope)
        index: VectorIndex | None = readers.get(snapshot, scope.encoder) if snapshot else None
        snapshot = snapshot if index is not None else None
        masked = ids_masked(scope, snapshot)
        self._scope, self._index = scope, index
        self._newer_ids, self._newer = deltas.get(scope, ids_newer(scope, snapshot))
        self._allowed: Selection | None = None
        self._excluded = masked
        self._dim = scope.encoder.dim
        self.used = _used(snapshot, self._newer_ids, masked)

    def exclude(self, ids: ArrayI64) -> None:
        """Leave these embeddings out."""
        self._excluded = np.concatenate([self._excluded, ids])

    def allow_only(self, ids: ArrayI64) -> None:
        """Find none but these embeddings."""
        self._allowed = selections.get(ids)

    def searched(self) -> int:
        """How many embeddings can be found."""
        held = self.used.in_file + self.used.newer
        excluded = np.unique(self._excluded)
        if self._allowed is not None:
            return len(self._allowed) - int(self._allowed.contains(excluded).sum())
        return max(held - int(excluded.size), 0)

    def ranked(
        self,
        vector: ArrayF32,
        k: int,
        *,
        expand: int = 0,
        diffuse: bool = False,
        examples: Examples | None = None,
    ) -> Ranking:
        """The ``k`` best for a vector (D,), which is expanded by its ``expand`` nearest.

        Args:
            diffuse: order them by diffusion over the nearest, see ``diffused_distances``.
            examples: what a person marked; it moves the vector in the place of its nearest.
        """
        if examples is not None:
            return self._refined(vector, k, examples)
        if not expand:
            return self._asked_once(vector, vector, k, diffuse=diffuse)
        near_ids, near = self._nearest_present(vector, expand)
        moved = expanded_query(vector.astype(np.float64), near.astype(np.float64))
        found = self._asked_once(vector, moved.astype(np.float32), k, diffuse=diffuse)
        nearest = _ranking(vector, near_ids, near).nearest
        return replace(found, nearest=nearest, expanded_by=tuple(near_ids.tolist()))

    def _asked_once(self, vector: ArrayF32, moved: ArrayF32, k: int, *, diffuse: bool) -> Ranking:
        """The first ``k`` for a vector that was moved, by its distance or by diffusion."""
        if not diffuse:
            return _ranking(vector, *self._nearest_present(moved, k))
        ids, vectors = self._nearest_present(moved, max(k, DIFFUSION.reach))
        away = diffused_distances(moved.astype(np.float64), vectors.astype(np.float64), DIFFUSION)
        order = np.argsort(away, kind="stable")[:k]
        nearest = _ranking(vector, ids, vectors).nearest
        return replace(_ranking(vector, ids[order], vectors[order]), nearest=nearest)

    def _refined(self, vector: ArrayF32, k: int, examples: Examples) -> Ranking:
        near_ids, near = self._nearest_present(vector, 1)
        moved = refined_query(
            vector.astype(np.float64),
            examples.liked.astype(np.float64),
            examples.unliked.astype(np.float64),
        )
        ids, vectors = self._nearest_present(moved.astype(np.float32), k)
        nearest = _ranking(vector, near_ids, near).nearest
        return replace(_ranking(vector, ids, vectors), nearest=nearest)

    def _nearest_present(self, vector: ArrayF32, k: int) -> tuple[ArrayI64, ArrayF32]:
        """The nearest and their vectors (N, D), without what went with its canvas.

        No row is left of it that could mask it in an older index file. Others take its place: k
        hits stay k hits.
        """
        while True:
            ids, _ = self._nearest(vector, k)
            present, vectors = vectors_by_id(ids, dim=self._dim)
            if len(present) == len(ids):
                return ids, vectors[np.searchsorted(present, ids)]
            self.exclude(np.setdiff1d(ids, present))

    def _nearest(self, vector: ArrayF32, k: int) -> Found:
        allowed, excluded = self._allowed, self._excluded
        parts = [
            exact_search(
                vector, self._newer_ids, self._newer, k, allowed=allowed, excluded=excluded
            )
        ]
        if self._index is not None:
            try:
                parts.append(self._index.search(vector, k, allowed=allowed, excluded=excluded))
            except IndexUnreachableError:
                logger.exception("the index server does not answer; the database is searched")
                self._without_index()
                return self._nearest(vector, k)
        return exact_merge(parts, k)

    def _without_index(self) -> None:
        """Take every current embedding from the database from now on."""
        self._index = None
        self._newer_ids, self._newer = deltas.get(self._scope, ids_newer(self._scope, None))
        self.used = _used(None, self._newer_ids, self._excluded)


def _ranking(vector: ArrayF32, ids: ArrayI64, vectors: ArrayF32) -> Ranking:
    distance = exact_distances(vector, vectors)
    return Ranking(ids, distance, float(distance[0]) if len(distance) else None)


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
