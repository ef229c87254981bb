"""What a vector index offers, whichever engine stands behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy.typing as npt

from ml.index.exact import Allowed
from ml.types import ArrayF64, ArrayI64, Progress, no_progress


@dataclass(frozen=True, slots=True)
class IndexStats:
    """What an index holds at one version.

    Attributes:
        version: grows by one with every write; 0 before the first.
        count: live vectors.
        dim: length of a vector.
        tag: whose vectors these are (an encoder's name, version and hash); empty if not given.
        kind: "empty", "flat" (every search is exact), "ivf" or "hnsw" (approximate, in files or on
            a server).
        n_delta: live vectors that were added after the base was built.
        n_removed: vectors of the base that were removed and are masked.
        recall: share of the exact answers to sample queries that the approximate search found when
            the base was written; 1 if it is exact.
    """

    version: int
    count: int
    dim: int
    tag: str
    kind: str
    n_delta: int
    n_removed: int
    recall: float = 1.0


@runtime_checkable
class VectorIndex(Protocol):
    """Vectors by id, searched by Euclidean distance. Safe to share between threads."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    @property
    def stats(self) -> IndexStats:
        """The state of the newest version."""

    def ids(self) -> ArrayI64:
        """(N,) every id it holds, ascending."""

    def build(
        self, ids: npt.ArrayLike, vectors: npt.ArrayLike, *, progress: Progress = no_progress
    ) -> int:
        """Replace the whole content by ``ids`` (N,), ``vectors`` (N, D); returns the version."""

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> int:
        """Add ``ids`` (N,), ``vectors`` (N, D), none of them in the index; returns the version."""

    def remove(self, ids: npt.ArrayLike) -> int:
        """Remove ``ids`` (N,); those not in the index are passed over. Returns how many went."""

    def compact(self, *, progress: Progress = no_progress) -> int:
        """Fold additions and removals into the base; returns the version."""

    def search(
        self,
        q: npt.ArrayLike,
        k: int,
        allowed: Allowed | None = None,
        excluded: npt.ArrayLike | None = None,
    ) -> tuple[ArrayI64, ArrayF64]:
        """The ``k`` nearest of what is allowed and not excluded: ids and distances."""
