"""Permitted rows of a base: as row numbers, as a bitmap, and as a subset with its own search."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import faiss
import numpy as np
import numpy.typing as npt

from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64

Bits = npt.NDArray[np.uint8]
"""(ceil(N / 8),): one bit per row of a base, the lowest bit of each byte first."""

_bitmap_selector: Any = faiss.IDSelectorBitmap
_search_parameters: Any = faiss.SearchParameters

SUBSET_SHARE = 5
"""Up to one row in five is copied into a subset; for more, testing one bit per row is cheap."""
_USES_BEFORE_SUBSET = 2
"""Uses of a selection before it gets a subset, as many are used a single time."""


_MAX_DROPPED = 64
"""Up to this many excluded rows, such as those of a patient, are dropped from the results."""


class Subset(Protocol):
    """Copies of some rows of a base, with their own search."""

    nbytes: int
    is_exact: bool  # candidates are in the order of the vectors themselves, not of 8-bit copies

    def candidates(self, q: ArrayF32, n: int, *, k: int, bits: Bits | None) -> ArrayI64:
        """Up to ``n`` permitted rows of the base that should include the ``k`` nearest."""


class RowSet:
    """Rows of one base, ascending and unique. Safe to share between threads."""

    def __init__(self, rows: ArrayI64, count: int) -> None:
        """``rows``: (M,) of a base of ``count`` rows."""
        self.rows, self._count = rows, count
        self._lock = threading.Lock()
        self._bits: Bits | None = None
        self._per_list: ArrayI64 | None = None
        self._part: Subset | None = None
        self._copies: ArrayF64 | None = None
        self._by_number: Any = None
        self._uses = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Memory of the rows and of everything derived from them."""
        arrays = (self.rows, self._bits, self._per_list, self._part, self._copies)
        return sum(int(array.nbytes) for array in arrays if array is not None)

    def positions(self, excluded: ArrayI64) -> ArrayI64:
        """Positions of the ``excluded`` (G,) base rows, ascending, in these rows."""
        return positions_of(self.rows, excluded)

    def copies(self, vectors: ArrayF32) -> ArrayF64:
        """These rows of ``vectors`` (N, D), as (M, D) float64; for few rows."""
        if self._copies is None:
            self._copies = vectors[self.rows].astype(np.float64)
        return self._copies

    def bits(self) -> Bits:
        """Bitmap of the rows."""
        if self._bits is None:
            mask = np.zeros(self._count, dtype=np.bool_)
            mask[self.rows] = True
            self._bits = np.packbits(mask, bitorder="little")
        return self._bits

    def by_number(self) -> Any:
        """FAISS parameters of a search among these row numbers."""
        if self._by_number is None:
            self._by_number = _search_parameters(sel=faiss.IDSelectorArray(self.rows))
        return self._by_number

    def per_list(self, list_of: npt.NDArray[np.int32], n_lists: int) -> ArrayI64:
        """Number (L,) of rows in each list; ``list_of`` (N,) has the list of each base row."""
        if self._per_list is None:
            self._per_list = np.bincount(list_of[self.rows], minlength=n_lists)
        return self._per_list

    def subset(self, make: Callable[[ArrayI64], Subset]) -> Subset | None:
        """A subset of these rows; None if it does not pay off, or not yet."""
        if len(self.rows) * SUBSET_SHARE > self._count:
            return None
        with self._lock:
            self._uses += 1
            if self._part is None and self._uses >= _USES_BEFORE_SUBSET:
                self._part = make(self.rows)
            return self._part


class ExcludedRows:
    """Rows that a search may not return: few are dropped from the results, many are masked."""

    def __init__(self, rows: ArrayI64, count: int) -> None:
        """``rows``: (G,) of a base of ``count``, ascending and unique."""
        self._rows, self._count = rows, count
        self.is_dropped = len(rows) <= _MAX_DROPPED
        self.n_dropped = len(rows) if self.is_dropped else 0

    def __len__(self) -> int:
        return len(self._rows)

    def masked(self, bits: Bits | None) -> Bits | None:
        """``bits`` of permitted rows (None for all) without these, unless they are dropped."""
        return bits if self.is_dropped else bits_without(bits, self._rows, self._count)

    def without(self, rows: ArrayI64) -> ArrayI64:
        """``rows`` (M,) without these, unless they are dropped."""
        return rows if self.is_dropped else rows[~_contains(self._rows, rows)]

    def dropped(self, rows: ArrayI64) -> ArrayI64:
        """``rows`` (M,) without these rows."""
        return rows[~_contains(self._rows, rows)] if len(self._rows) else rows


def _contains(rows: ArrayI64, queries: ArrayI64) -> ArrayBool:
    """Mask (M,) bool of the ``queries`` (M,) that are in the ascending ``rows``."""
    if not len(rows):
        return np.zeros(len(queries), dtype=np.bool_)
    mask: ArrayBool = rows[_insertion_points(rows, queries)] == queries
    return mask


def positions_of(numbers: ArrayI64, queries: ArrayI64) -> ArrayI64:
    """Positions in the ascending ``numbers`` of those ``queries`` (M,) that are among them."""
    if not len(queries) or not len(numbers):
        return np.empty(0, dtype=np.int64)
    positions = _insertion_points(numbers, queries)
    matching: ArrayI64 = positions[numbers[positions] == queries]
    return matching


def _insertion_points(numbers: ArrayI64, queries: ArrayI64) -> ArrayI64:
    positions = numbers.searchsorted(queries)
    positions[positions == len(numbers)] = (
        0  # past the end; the first differs, so it counts as not found
    )
    return positions


def ascending(rows: ArrayI64) -> ArrayI64:
    """Sorted unique ``rows``; faster than ``np.unique`` for few."""
    rows = np.sort(rows)
    is_new = np.empty(len(rows), dtype=np.bool_)
    is_new[:1] = True
    np.not_equal(rows[1:], rows[:-1], out=is_new[1:])
    return rows if is_new.all() else rows[is_new]


def bits_without(bits: Bits | None, excluded: ArrayI64, count: int) -> Bits | None:
    """``bits`` (None for all of ``count`` rows) with the ``excluded`` (G,) ones cleared."""
    if not len(excluded):
        return bits
    remaining = np.full((count + 7) // 8, 255, dtype=np.uint8) if bits is None else bits.copy()
    np.bitwise_and.at(remaining, excluded >> 3, ~(np.uint8(1) << (excluded & 7).astype(np.uint8)))
    return remaining


def selector(bits: Bits | None) -> Any:
    """FAISS selector of ``bits``; None for all rows. It keeps no reference to ``bits``."""
    return None if bits is None else _bitmap_selector(bits)
