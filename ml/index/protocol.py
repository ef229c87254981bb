"""Interface of a vector index, common to all engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ml.index.exact import Allowed, SearchResult
from ml.index.inputs import checked_entries, checked_ids, checked_k, checked_query
from ml.index.selection import Selection
from ml.types import ArrayF32, ArrayI64, Progress, no_progress


@dataclass(frozen=True, slots=True)
class IndexStats:
    """Content of an index at one version.

    Attributes:
        version: Incremented by every write; 0 before the first.
        count: Live vectors.
        dim: Length of a vector.
        tag: Identity of the encoder (name, version and hash); empty if not given.
        kind: "empty", "flat" (every search is exact), "ivf" or "hnsw" (approximate, in files or on
            a server).
        n_delta: Live vectors added after the base was built.
        n_removed: Vectors of the base that were removed and are masked.
        recall: Recall of the approximate search over sample queries, measured when the base was
            written; 1 if it is exact.
    """

    version: int
    count: int
    dim: int
    tag: str
    kind: str
    n_delta: int
    n_removed: int
    recall: float = 1.0


class VectorIndex(ABC):
    """Vectors by id, searched by Euclidean distance. Safe to share between threads.

    Input is checked here; an engine implements the methods that begin with an underscore.
    """

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of a vector."""

    @property
    @abstractmethod
    def stats(self) -> IndexStats:
        """State of the newest version."""

    @abstractmethod
    def ids(self) -> ArrayI64:
        """All ids (N,) int64, ascending."""

    def build(
        self, ids: npt.ArrayLike, vectors: npt.ArrayLike, *, progress: Progress = no_progress
    ) -> int:
        """Replace the content by a new version that readers see atomically.

        Args:
            ids: (N,) int64, unique; N may not be 0.
            vectors: (N, D) float32, finite.
        Returns:
            The new version.
        Raises:
            ShapeError, BadInputError: As documented on ``ml.index.inputs.checked_entries``.
            IndexBusyError: Another writer does not finish.
            IndexUnreachableError: The server of the index does not answer.
        """
        return self._build(*checked_entries(ids, vectors, self.dim), progress)

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> int:
        """Add vectors under new ids; the next search of every reader finds them.

        Args:
            ids: (N,) int64, unique, none of them in the index.
            vectors: (N, D) float32, finite.
        Returns:
            The new version.
        Raises:
            BadInputError: An id is in the index already; otherwise as for ``build``.
        """
        return self._add(*checked_entries(ids, vectors, self.dim))

    def remove(self, ids: npt.ArrayLike) -> int:
        """Remove ``ids`` (N,) int64, ignoring those that are not in the index.

        Returns:
            Number of vectors removed.
        Raises:
            ShapeError: Not (N,) integers; otherwise as for ``build``.
        """
        return self._remove(np.unique(checked_ids(ids)))

    def search(
        self,
        q: npt.ArrayLike,
        k: int,
        allowed: Allowed | None = None,
        excluded: npt.ArrayLike | None = None,
    ) -> SearchResult:
        """Find the nearest permitted vectors by Euclidean distance.

        Args:
            q: (D,) float32, finite.
            k: Largest number of results; fewer are returned if fewer are permitted.
            allowed: (M,) int64, the permitted ids, or a ``Selection`` of them, which is faster if
                the same ids are used again; None permits every id.
            excluded: (M,) int64, ids to leave out.
        Returns:
            ids (k,) int64 and distances (k,) float64, nearest first, ties ordered by id.
        Raises:
            ShapeError: q is not (D,), or an id array is not (M,) integers.
            BadInputError: k below 1, or a value of q that is too large or not finite.
        """
        query, k = checked_query(q, self.dim), checked_k(k)
        if allowed is not None and not isinstance(allowed, Selection):
            allowed = Selection(allowed)
        exclude = None if excluded is None else checked_ids(excluded, name="excluded")
        return self._search(query, k, allowed, exclude)

    @abstractmethod
    def _build(self, ids: ArrayI64, vectors: ArrayF32, progress: Progress) -> int: ...

    @abstractmethod
    def _add(self, ids: ArrayI64, vectors: ArrayF32) -> int: ...

    @abstractmethod
    def _remove(self, ids: ArrayI64) -> int: ...

    @abstractmethod
    def _search(
        self, q: ArrayF32, k: int, allowed: Selection | None, excluded: ArrayI64 | None
    ) -> SearchResult: ...
