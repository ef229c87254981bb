"""Copies of the few rows that a filter permits, scanned or searched by groups of inverted lists.

The copies are float32, so that candidates are in the order of the vectors themselves. The number of
groups that a search visits is measured when the copies are made, as for inverted lists.
"""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from ml.index.files.segments.centroids import kmeans
from ml.index.rows import Bits, Subset, selector
from ml.types import ArrayF32, ArrayI64

_parameters: Any = faiss.SearchParametersIVF
_plain_parameters: Any = faiss.SearchParameters
_MAX_SCANNED_ROWS = 2_048  # below, measuring the groups costs as much as a scan
_SAMPLE, _K, _RECALL = 32, 25, 0.999
"""Sample queries, their neighbours, and the share of these that has to be found."""


class CentroidGroups:
    """Inverted lists in sqrt(L) groups by their centroids."""

    def __init__(self, centroids: ArrayF32) -> None:
        """``centroids``: (L, D) float32, of the lists."""
        self.centroids = faiss.IndexFlatL2(centroids.shape[1])
        self.centroids.add(kmeans(centroids, max(1, int(np.sqrt(len(centroids))))))
        _, group_of = self.centroids.search(np.ascontiguousarray(centroids), 1)
        self.group_of_list: ArrayI64 = group_of[:, 0]


class FlatSubset:
    """A subset that is scanned."""

    is_exact = True

    def __init__(self, vectors: ArrayF32, rows: ArrayI64) -> None:
        """``vectors``: (M, D) of ``rows`` (M,)."""
        self._index = faiss.IndexFlatL2(vectors.shape[1])
        self._index.add(vectors)
        self._rows = rows
        self.nbytes = vectors.nbytes + rows.nbytes

    def candidates(self, q: ArrayF32, n: int, *, k: int, bits: Bits | None) -> ArrayI64:
        """See ``Subset``."""
        n = min(n, len(self._rows))
        if bits is None:
            _, neighbours = self._index.search(q[None], n)
            return np.asarray(self._rows[neighbours[0]])
        subset_bits = np.packbits(
            (bits[self._rows >> 3] >> (self._rows & 7)) & 1, bitorder="little"
        )
        _, neighbours = self._index.search(
            q[None], n, params=_plain_parameters(sel=selector(subset_bits))
        )
        return np.asarray(self._rows[neighbours[0][neighbours[0] >= 0]])


class ClusteredSubset:
    """A subset searched in its nearest groups; the FAISS ``index`` returns rows of the base."""

    is_exact = True

    def __init__(self, index: Any, n_groups: int) -> None:
        self._index, self._n_groups = index, n_groups
        self._plain = _parameters(nprobe=n_groups)  # reused: its creation takes microseconds
        self._count = int(index.ntotal)
        self.nbytes = self._count * (int(index.sa_code_size()) + 8)

    def candidates(self, q: ArrayF32, n: int, *, k: int, bits: Bits | None) -> ArrayI64:
        """See ``Subset``."""
        n = min(n, self._count)
        parameters = self._plain
        if bits is not None:
            parameters = _parameters(sel=selector(bits), nprobe=self._n_groups)
        _, neighbours = self._index.search(q[None], n, params=parameters)
        rows = neighbours[0][neighbours[0] >= 0]
        if len(rows) < n and self._n_groups < self._index.nlist:
            # Too few rows in the nearest groups: search all groups.
            parameters = _parameters(sel=selector(bits), nprobe=self._index.nlist)
            _, neighbours = self._index.search(q[None], n, params=parameters)
            rows = neighbours[0][neighbours[0] >= 0]
        return np.asarray(rows)


def make_subset(
    vectors: ArrayF32, rows: ArrayI64, groups: CentroidGroups, list_of: npt.NDArray[np.int32]
) -> Subset:
    """Copy ``rows`` (M,) of a base's ``vectors`` (N, D).

    Args:
        list_of: (M,) int32, list of each row.
    """
    copies = np.ascontiguousarray(vectors[rows])
    if len(rows) <= _MAX_SCANNED_ROWS or groups.centroids.ntotal == 1:
        return FlatSubset(copies, rows)
    index = faiss.IndexIVFFlat(groups.centroids, copies.shape[1], groups.centroids.ntotal)
    index.is_trained = True
    # Variables, as FAISS gets only their addresses.
    numbers, group_of = np.ascontiguousarray(rows), groups.group_of_list[list_of]
    index.add_core(
        len(rows), faiss.swig_ptr(copies), faiss.swig_ptr(numbers), faiss.swig_ptr(group_of)
    )
    queries = copies[:: len(rows) // _SAMPLE]
    truth = faiss.IndexFlatL2(copies.shape[1])
    truth.add(copies)
    expected = rows[truth.search(queries, _K)[1]]
    n_groups = 1
    while n_groups < groups.centroids.ntotal:
        _, neighbours = index.search(queries, _K, params=_parameters(nprobe=n_groups))
        recalls = [np.isin(a, b).mean() for a, b in zip(expected, neighbours, strict=True)]
        if np.mean(recalls) >= _RECALL:
            n_groups *= 2  # a query need not be a row
            break
        n_groups += max(1, n_groups // 4)
    return ClusteredSubset(index, min(n_groups, groups.centroids.ntotal))
