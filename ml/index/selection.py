"""Ids that searches may find, prepared once and used by many searches."""

from __future__ import annotations

import threading
import weakref
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ml.index.inputs import checked_ids
from ml.index.rows import RowSet
from ml.types import ArrayBool, ArrayI64


class Base(Protocol):
    """What ids are looked up in."""

    @property
    def ids(self) -> ArrayI64:
        """(N,) the ids that it holds."""

    def rows_of(self, ids: ArrayI64) -> ArrayI64:
        """Rows of those ``ids`` (M,) that it holds."""


class Selection:
    """An immutable set of ids. Safe to share between threads.

    A search that is given one looks its rows up once per base, not once per query; a
    selection that is searched again gets a small index of its own where that is faster. Keep it
    as long as the same ids are asked for.
    """

    def __init__(self, ids: npt.ArrayLike) -> None:
        """``ids``: (M,) whole numbers, in any order, repeated or not.

        Raises:
            ShapeError: not (M,) whole numbers.
        """
        self.ids: ArrayI64 = np.unique(checked_ids(ids, name="allowed"))
        self.ids.flags.writeable = False
        self._lock = threading.Lock()
        self._prepared: weakref.WeakKeyDictionary[Base, RowSet] = weakref.WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Bytes in memory of the ids and of what was prepared from them."""
        with self._lock:
            return int(self.ids.nbytes) + sum(rows.nbytes for rows in self._prepared.values())

    def contains(self, ids: ArrayI64) -> ArrayBool:
        """(N,) bool: which of ``ids`` (N,) are in the set."""
        if not len(self.ids):
            return np.zeros(len(ids), dtype=np.bool_)
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        found: ArrayBool = self.ids[places] == ids
        return found

    def rows_in(self, base: Base) -> RowSet:
        """Its rows in one base, prepared by the first search that asks."""
        with self._lock:
            rows = self._prepared.get(base)
            if rows is None:
                rows = self._prepared[base] = RowSet(base.rows_of(self.ids), len(base.ids))
            return rows
