"""Sets of permitted ids, prepared for use by many searches."""

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
    """Base that ids are looked up in."""

    @property
    def ids(self) -> ArrayI64:
        """Ids (N,), ascending."""

    def rows_of(self, ids: ArrayI64) -> ArrayI64:
        """Rows of those ``ids`` (M,) that are in the base."""


class Selection:
    """An immutable set of ids. Safe to share between threads.

    Its rows are looked up once per base, not once per query, and a selection that is used again
    gets a small index if that is faster. Reuse it for the same ids.
    """

    def __init__(self, ids: npt.ArrayLike) -> None:
        """``ids``: (M,) integers in any order, possibly repeated.

        Raises:
            ShapeError: Not (M,) integers.
        """
        self.ids: ArrayI64 = np.unique(checked_ids(ids, name="allowed"))
        self.ids.flags.writeable = False
        self._lock = threading.Lock()
        self._rows_by_base: weakref.WeakKeyDictionary[Base, RowSet] = weakref.WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Memory in bytes of the ids and of the rows prepared for bases."""
        with self._lock:
            return int(self.ids.nbytes) + sum(rows.nbytes for rows in self._rows_by_base.values())

    def contains(self, ids: ArrayI64) -> ArrayBool:
        """Mask (N,) bool of the ``ids`` (N,) in the set."""
        if not len(self.ids):
            return np.zeros(len(ids), dtype=np.bool_)
        positions = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        is_member: ArrayBool = self.ids[positions] == ids
        return is_member

    def rows_in(self, base: Base) -> RowSet:
        """Rows of a base with these ids, cached."""
        with self._lock:
            rows = self._rows_by_base.get(base)
            if rows is None:
                rows = self._rows_by_base[base] = RowSet(base.rows_of(self.ids), len(base.ids))
            return rows
