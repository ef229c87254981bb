"""Copies of the few rows that a filter permits: scanned, or those of the nearest groups of lists.

The copies are float32, so that what they propose is in the order of the vectors themselves. How
many groups a search visits is measured when the copies are made, as with lists.
"""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from ml.index.base.clusters import means
from ml.index.rows import Bits, Part, selector
from ml.types import ArrayF32, ArrayI64

_parameters: Any = faiss.SearchParametersIVF
_plain_parameters: Any = faiss.SearchParameters
_SCANNED_MOST = 2_048  # rows: below, measuring the groups costs as much as the scan
_SAMPLE, _K, _RECALL = 32, 25, 0.999
"""Rows searched with, for this many of their nearest, of which this share has to be found."""


class Groups:
    """The lists of a base in as many groups as the root of their number."""

    def __init__(self, centres: ArrayF32) -> None:
        """``centres``: (L, D) of the lists."""
        self.middles = faiss.IndexFlatL2(centres.shape[1])
        self.middles.add(means(centres, max(1, int(np.sqrt(len(centres))))))
        _, of = self.middles.search(np.ascontiguousarray(centres), 1)
        self.of_list: ArrayI64 = of[:, 0]


class PartFlat:
    """Scanned whole."""

    is_exact = True

    def __init__(self, vectors: ArrayF32, rows: ArrayI64) -> None:
        """``vectors``: (M, D) of ``rows`` (M,)."""
        self._index = faiss.IndexFlatL2(vectors.shape[1])
        self._index.add(vectors)
        self._rows = rows
        self.nbytes = vectors.nbytes + rows.nbytes

    def proposed(self, q: ArrayF32, n: int, *, k: int, bits: Bits | None) -> ArrayI64:
        """As ``Lists.proposed``, among these rows."""
        n = min(n, len(self._rows))
        if bits is None:
            _, found = self._index.search(q[None], n)
            return np.asarray(self._rows[found[0]])
        kept = np.packbits((bits[self._rows >> 3] >> (self._rows & 7)) & 1, bitorder="little")
        _, found = self._index.search(q[None], n, params=_plain_parameters(sel=selector(kept)))
        return np.asarray(self._rows[found[0][found[0] >= 0]])


class PartGroups:
    """Of the nearest groups alone. ``index`` is FAISS' and gives rows of the base."""

    is_exact = True

    def __init__(self, index: Any, n_groups: int) -> None:
        self._index, self._n_groups = index, n_groups
        self._plain = _parameters(nprobe=n_groups)  # made once: it is some microseconds of a search
        self._count = int(index.ntotal)
        self.nbytes = self._count * (int(index.sa_code_size()) + 8)

    def proposed(self, q: ArrayF32, n: int, *, k: int, bits: Bits | None) -> ArrayI64:
        """As ``Lists.proposed``, among these rows."""
        n = min(n, self._count)
        parameters = self._plain
        if bits is not None:
            parameters = _parameters(sel=selector(bits), nprobe=self._n_groups)
        _, found = self._index.search(q[None], n, params=parameters)
        rows = found[0][found[0] >= 0]
        if len(rows) < n and self._n_groups < self._index.nlist:
            # Too little lies so near: all of them, this once.
            parameters = _parameters(sel=selector(bits), nprobe=self._index.nlist)
            _, found = self._index.search(q[None], n, params=parameters)
            rows = found[0][found[0] >= 0]
        return np.asarray(rows)


def few_rows(
    vectors: ArrayF32, rows: ArrayI64, groups: Groups, list_of: npt.NDArray[np.int32]
) -> Part:
    """Copies of ``rows`` (M,) of a base's ``vectors`` (N, D).

    Args:
        list_of: (M,) the list of each.
    """
    own = np.ascontiguousarray(vectors[rows])
    if len(rows) <= _SCANNED_MOST or groups.middles.ntotal == 1:
        return PartFlat(own, rows)
    index = faiss.IndexIVFFlat(groups.middles, own.shape[1], groups.middles.ntotal)
    index.is_trained = True
    # In names of their own: FAISS is given where they lie, and reads it.
    numbers, group_of = np.ascontiguousarray(rows), groups.of_list[list_of]
    index.add_core(
        len(rows), faiss.swig_ptr(own), faiss.swig_ptr(numbers), faiss.swig_ptr(group_of)
    )
    asked = own[:: len(rows) // _SAMPLE]
    truth = faiss.IndexFlatL2(own.shape[1])
    truth.add(own)
    want = rows[truth.search(asked, _K)[1]]
    n_groups = 1
    while n_groups < groups.middles.ntotal:
        _, found = index.search(asked, _K, params=_parameters(nprobe=n_groups))
        shares = [np.isin(one, other).mean() for one, other in zip(want, found, strict=True)]
        if np.mean(shares) >= _RECALL:
            n_groups *= 2  # a query need not be a row
            break
        n_groups += max(1, n_groups // 4)
    return PartGroups(index, min(n_groups, groups.middles.ntotal))
