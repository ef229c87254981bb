"""Nearest embeddings of a vector, from the index file and the database.

The search of an index file excludes everything that must not be found: superseded embeddings, the
same patient's, those outside a filter. Embeddings newer than the file are searched exactly. The
answer equals a search over all current embeddings.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, replace

import numpy as np

from ml.errors import IndexUnreachableError
from ml.index.exact import SearchResult, exact_distances, exact_merge, exact_search
from ml.index.protocol import VectorIndex
from ml.index.ranking.diffusion import DiffusionConfig, diffused_distances
from ml.index.ranking.expansion import expanded_query, refined_query
from ml.index.selection import Selection
from ml.types import ArrayF32, ArrayF64, ArrayI64
from portal.embeddings.indexes import Scope
from portal.embeddings.models import IndexSnapshot
from portal.embeddings.selectors.embeddings import vectors_by_id
from portal.embeddings.selectors.index_files.delta import ids_masked, ids_newer
from portal.embeddings.selectors.index_files.readers import deltas, readers, selections
from portal.embeddings.selectors.index_files.snapshots import snapshot_latest

DIFFUSION = DiffusionConfig()
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexUsed:
    """The searched index, recorded so that an answer can be repeated.

    Attributes:
        version, snapshot_id: Index file; 0 and None if all vectors came from the database.
        in_file: Vectors in the file.
        newer: Vectors outside the file, searched exactly.
        masked: Vectors of the file that were left out.
        last_embedding_id: The newest embedding that took part.
    """

    version: int
    snapshot_id: uuid.UUID | None
    in_file: int
    newer: int
    masked: int
    last_embedding_id: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """Nearest neighbours of a vector, best first.

    Attributes:
        ids: (N,) Embeddings.
        distance: (N,) Distance of each to the query vector.
        nearest: Smallest distance of any candidate; None if there is none.
        expanded_by: Embeddings used for query expansion, nearest first. ``ids`` are then ordered by
            the distance to the expanded query, and ``distance`` need not ascend; the same applies
            where examples moved the query, and to diffusion.
    """

    ids: ArrayI64
    distance: ArrayF64
    nearest: float | None
    expanded_by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Examples:
    """Vectors of liked (L, D) and unliked (U, D) examples."""

    liked: ArrayF32
    unliked: ArrayF32


class Candidates:
    """Embeddings that one search may find, the same for all its passes.

    The order of reads matters: the snapshot, then changes since, then (by the caller) exclusions,
    so that nothing newer than the exclusions takes part.
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
        self.used = _index_used(snapshot, self._newer_ids, masked)

    def exclude(self, ids: ArrayI64) -> None:
        """Exclude these embeddings."""
        self._excluded = np.concatenate([self._excluded, ids])

    def allow_only(self, ids: ArrayI64) -> None:
        """Restrict the search to these embeddings."""
        self._allowed = selections.get(ids)

    def searched(self) -> int:
        """Number of embeddings that can be found."""
        indexed = self.used.in_file + self.used.newer
        excluded = np.unique(self._excluded)
        if self._allowed is not None:
            return len(self._allowed) - int(self._allowed.contains(excluded).sum())
        return max(indexed - int(excluded.size), 0)

    def ranked(
        self,
        vector: ArrayF32,
        k: int,
        *,
        expand: int = 0,
        diffuse: bool = False,
        examples: Examples | None = None,
    ) -> Ranking:
        """Best ``k`` for a vector (D,).

        Args:
            expand: Number of nearest neighbours for query expansion.
            diffuse: Order by diffusion over the nearest, see ``diffused_distances``.
            examples: Judged regions, which move the query instead of its nearest neighbours.
        """
        if examples is not None:
            return self._rank_refined(vector, k, examples)
        if not expand:
            return self._search_by(vector, k, original=vector, diffuse=diffuse)
        near_ids, near = self._nearest_existing(vector, expand)
        expanded = expanded_query(vector.astype(np.float64), near.astype(np.float64))
        ranking = self._search_by(expanded.astype(np.float32), k, original=vector, diffuse=diffuse)
        nearest = _ranking(vector, near_ids, near).nearest
        return replace(ranking, nearest=nearest, expanded_by=tuple(near_ids.tolist()))

    def _search_by(
        self, expanded: ArrayF32, k: int, *, original: ArrayF32, diffuse: bool
    ) -> Ranking:
        """Best ``k`` for an expanded query, by distance or by diffusion.

        Args:
            expanded: (D,) query that orders the answer, or that the diffusion starts from.
            original: (D,) query to which the distances of the answer are measured, and whose
                direct share the diffusion has.
        """
        if not diffuse:
            return _ranking(original, *self._nearest_existing(expanded, k))
        ids, vectors = self._nearest_existing(expanded, max(k, DIFFUSION.reach))
        diffused = diffused_distances(
            original.astype(np.float64),
            vectors.astype(np.float64),
            DIFFUSION,
            expanded=expanded.astype(np.float64),
        )
        order = np.argsort(diffused, kind="stable")[:k]
        nearest = _ranking(original, ids, vectors).nearest
        return replace(_ranking(original, ids[order], vectors[order]), nearest=nearest)

    def _rank_refined(self, vector: ArrayF32, k: int, examples: Examples) -> Ranking:
        near_ids, near = self._nearest_existing(vector, 1)
        refined = refined_query(
            vector.astype(np.float64),
            examples.liked.astype(np.float64),
            examples.unliked.astype(np.float64),
        )
        ids, vectors = self._nearest_existing(refined.astype(np.float32), k)
        nearest = _ranking(vector, near_ids, near).nearest
        return replace(_ranking(vector, ids, vectors), nearest=nearest)

    def _nearest_existing(self, vector: ArrayF32, k: int) -> tuple[ArrayI64, ArrayF32]:
        """Nearest embeddings and their vectors (N, D), without deleted rows.

        Deleted rows cannot be masked in an older index file; others take their place.
        """
        while True:
            ids, _ = self._nearest(vector, k)
            present, vectors = vectors_by_id(ids, dim=self._dim)
            if len(present) == len(ids):
                return ids, vectors[np.searchsorted(present, ids)]
            self.exclude(np.setdiff1d(ids, present))

    def _nearest(self, vector: ArrayF32, k: int) -> SearchResult:
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
                self._drop_index()
                return self._nearest(vector, k)
        return exact_merge(parts, k)

    def _drop_index(self) -> None:
        """Take every current embedding from the database from now on."""
        self._index = None
        self._newer_ids, self._newer = deltas.get(self._scope, ids_newer(self._scope, None))
        self.used = _index_used(None, self._newer_ids, self._excluded)


def _ranking(vector: ArrayF32, ids: ArrayI64, vectors: ArrayF32) -> Ranking:
    distance = exact_distances(vector, vectors)
    return Ranking(ids, distance, float(distance[0]) if len(distance) else None)


def _index_used(snapshot: IndexSnapshot | None, newer_ids: ArrayI64, masked: ArrayI64) -> IndexUsed:
    last = snapshot.last_embedding_id if snapshot else 0
    return IndexUsed(
        version=snapshot.version if snapshot else 0,
        snapshot_id=snapshot.pk if snapshot else None,
        in_file=snapshot.count if snapshot else 0,
        newer=len(newer_ids),
        masked=len(masked),
        last_embedding_id=max([last, *newer_ids[-1:].tolist()]),
    )
