"""Rows of one base that a search may find: as numbers, as bits, and as an index of their own."""

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

PART_SHARE = 5
"""Up to one row in five is copied into lists of its own; for more, testing one bit per row is cheap
enough."""
_USES_BEFORE_PART = 2
"""The search of a selection that makes lists for it: most selections are searched only once."""


_DROPPED_MOST = 64
"""Up to this many rows to leave out, as of a patient, are fetched and dropped, not masked."""


class Part(Protocol):
    """Copies of some rows of a base, searched without looking at any other."""

    nbytes: int
    is_exact: bool  # proposals are ordered by the vectors themselves, not by 8-bit copies

    def proposed(self, q: ArrayF32, n: int, *, k: int, bits: Bits | None) -> ArrayI64:
        """Up to ``n`` permitted rows of the base among which the ``k`` nearest may be."""


class RowSet:
    """Rows of one base, ascending and unique. Safe to share between threads."""

    def __init__(self, rows: ArrayI64, count: int) -> None:
        """``rows``: (M,) of a base of ``count`` rows."""
        self.rows, self._count = rows, count
        self._lock = threading.Lock()
        self._bits: Bits | None = None
        self._per_list: ArrayI64 | None = None
        self._part: Part | None = None
        self._copies: ArrayF64 | None = None
        self._by_number: Any = None
        self._uses = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes in memory of all that was prepared."""
        kept = (self.rows, self._bits, self._per_list, self._part, self._copies)
        return sum(int(one.nbytes) for one in kept if one is not None)

    def places(self, gone: ArrayI64) -> ArrayI64:
        """Positions among the rows of those of ``gone`` (G,), ascending, that are rows here."""
        return places_of(self.rows, gone)

    def copies(self, vectors: ArrayF32) -> ArrayF64:
        """(M, D) float64, these rows of a base's ``vectors`` (N, D); for few rows."""
        if self._copies is None:
            self._copies = vectors[self.rows].astype(np.float64)
        return self._copies

    def bits(self) -> Bits:
        """The rows as bits."""
        if self._bits is None:
            mask = np.zeros(self._count, dtype=np.bool_)
            mask[self.rows] = True
            self._bits = np.packbits(mask, bitorder="little")
        return self._bits

    def by_number(self) -> Any:
        """FAISS' parameters for a search of these rows alone, by their numbers."""
        if self._by_number is None:
            self._by_number = _search_parameters(sel=faiss.IDSelectorArray(self.rows))
        return self._by_number

    def per_list(self, list_of: npt.NDArray[np.int32], n_lists: int) -> ArrayI64:
        """(L,) how many of the rows each list has. ``list_of``: (N,) the list of each row."""
        if self._per_list is None:
            self._per_list = np.bincount(list_of[self.rows], minlength=n_lists)
        return self._per_list

    def part(self, make: Callable[[ArrayI64], Part]) -> Part | None:
        """Copies of these rows alone; None if they are not worth it, or not yet."""
        if len(self.rows) * PART_SHARE > self._count:
            return None
        with self._lock:
            self._uses += 1
            if self._part is None and self._uses >= _USES_BEFORE_PART:
                self._part = make(self.rows)
            return self._part


class LeftOut:
    """Rows that a search may not find: few are dropped from what it found, many are masked.

    A mask copies one bit per row of the base, and each row looked at is looked up in it.
    """

    def __init__(self, rows: ArrayI64, count: int) -> None:
        """``rows``: (G,) of a base of ``count``, ascending and unique."""
        self._rows, self._count = rows, count
        self.is_dropped = len(rows) <= _DROPPED_MOST
        self.n_dropped = len(rows) if self.is_dropped else 0

    def __len__(self) -> int:
        return len(self._rows)

    def masked(self, bits: Bits | None) -> Bits | None:
        """``bits`` of the rows to look for (None: all), less these rows unless they are dropped."""
        return bits if self.is_dropped else bits_without(bits, self._rows, self._count)

    def without(self, rows: ArrayI64) -> ArrayI64:
        """``rows`` (M,) to look for, less these rows unless they are dropped."""
        return rows if self.is_dropped else rows[~_holds(self._rows, rows)]

    def dropped(self, found: ArrayI64) -> ArrayI64:
        """``found`` (M,) without these rows."""
        return found[~_holds(self._rows, found)] if len(self._rows) else found


def _holds(rows: ArrayI64, asked: ArrayI64) -> ArrayBool:
    """(M,) bool: which of ``asked`` (M,) are among ``rows``, which ascend."""
    if not len(rows):
        return np.zeros(len(asked), dtype=np.bool_)
    held: ArrayBool = rows[_nearest_places(rows, asked)] == asked
    return held


def places_of(numbers: ArrayI64, asked: ArrayI64) -> ArrayI64:
    """Positions in ``numbers``, which ascend, of those of ``asked`` (M,) that are among them."""
    if not len(asked) or not len(numbers):
        return np.empty(0, dtype=np.int64)
    places = _nearest_places(numbers, asked)
    found: ArrayI64 = places[numbers[places] == asked]
    return found


def _nearest_places(numbers: ArrayI64, asked: ArrayI64) -> ArrayI64:
    places = numbers.searchsorted(asked)
    places[places == len(numbers)] = 0  # what is past the end is not there, nor is it the first
    return places


def ascending(rows: ArrayI64) -> ArrayI64:
    """``rows`` sorted, each once, as by ``np.unique``; for the few that a search leaves out."""
    rows = np.sort(rows)
    is_new = np.empty(len(rows), dtype=np.bool_)
    is_new[:1] = True
    np.not_equal(rows[1:], rows[:-1], out=is_new[1:])
    return rows if is_new.all() else rows[is_new]


def bits_without(bits: Bits | None, gone: ArrayI64, count: int) -> Bits | None:
    """``bits`` (None: every one of ``count`` rows) with those of ``gone`` (G,) cleared."""
    if not len(gone):
        return bits
    left = np.full((count + 7) // 8, 255, dtype=np.uint8) if bits is None else bits.copy()
    np.bitwise_and.at(left, gone >> 3, ~(np.uint8(1) << (gone & 7).astype(np.uint8)))
    return left


def selector(bits: Bits | None) -> Any:
    """FAISS' selector of ``bits``; None for all rows. Keep ``bits`` as long as it is used."""
    return None if bits is None else _bitmap_selector(bits)
