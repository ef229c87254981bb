"""Checks of the input of an index: shapes, types, finite values, unique ids."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, ShapeError
from ml.types import ArrayF32, ArrayI64

_Describe = Callable[[int], str]

MAX_VALUE = 1e15
"""Largest component: squared float32 distances do not overflow up to a million dimensions."""
_CHUNK_ROWS = 65_536  # checked at a time


def checked_ids(ids: npt.ArrayLike, *, name: str = "ids") -> ArrayI64:
    """``ids`` as (N,) int64, N may be 0.

    Raises:
        ShapeError: Not one-dimensional, not integers, or too large for int64.
    """
    array = np.asarray(ids)
    if array.ndim != 1:
        raise ShapeError(name, expected="(N,) int64", actual=f"{array.shape} {array.dtype}")
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu" or (array.dtype == np.uint64 and array.max() >= 2**63):
        raise ShapeError(name, expected="(N,) int64", actual=f"{array.shape} {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.int64)


def checked_entries(
    ids: npt.ArrayLike, vectors: npt.ArrayLike, dim: int
) -> tuple[ArrayI64, ArrayF32]:
    """``ids`` (N,) and ``vectors`` (N, D) as int64 and float32 arrays, sorted by id.

    They are copied only if necessary, as ``vectors`` may be a large mapped file.

    Raises:
        ShapeError: Wrong shape, type or dimension, or not as many ids as vectors.
        BadInputError: Empty input, a duplicate id, a value that is not finite or too large.
    """
    id_array = checked_ids(ids)
    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ShapeError("vectors", expected=f"(N, {dim}) float32", actual=str(error)) from error
    if array.ndim != 2 or (array.shape[1] != dim and array.size > 0):
        raise ShapeError("vectors", expected=f"(N, {dim}) float32", actual=str(array.shape))
    if len(id_array) != len(array):
        raise ShapeError(
            "ids", expected=f"({len(array)},), one for each vector", actual=str(id_array.shape)
        )
    if len(id_array) == 0:
        raise BadInputError("no vectors were given: at least one is needed")
    if not (id_array[1:] > id_array[:-1]).all():
        order = np.argsort(id_array, kind="stable")
        id_array, array = id_array[order], array[order]
    duplicates = np.flatnonzero(id_array[1:] == id_array[:-1])
    if len(duplicates):
        raise BadInputError(
            f"id {id_array[duplicates[0]]} is given more than once; ids must be unique"
        )
    _check_values(array, lambda row: f"the vector of id {id_array[row]}")
    return id_array, array


def checked_query(q: npt.ArrayLike, dim: int) -> ArrayF32:
    """``q`` as (D,) float32.

    Raises:
        ShapeError: Another shape or type.
        BadInputError: A value that is not finite or too large.
    """
    try:
        array = np.ascontiguousarray(q, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ShapeError("q", expected=f"({dim},) float32", actual=str(error)) from error
    if np.ndim(q) != 1 or array.shape != (dim,):
        raise ShapeError("q", expected=f"({dim},) float32", actual=str(np.shape(q)))
    if not np.abs(array).max() <= MAX_VALUE:  # False for NaN too
        _check_values(array[None], lambda row: "q")
    return array


def checked_k(k: int) -> int:
    """``k`` as an int of at least 1.

    Raises:
        BadInputError: Any other value.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise BadInputError(f"k: expected an integer of at least 1, got {k!r}")
    return int(k)


def _check_values(array: ArrayF32, describe: _Describe) -> None:
    for start in range(0, len(array), _CHUNK_ROWS):
        part = array[start : start + _CHUNK_ROWS]
        is_valid = np.abs(part) <= MAX_VALUE  # False for NaN too
        if is_valid.all():
            continue
        row, column = np.argwhere(~is_valid)[0]
        raise BadInputError(
            f"{describe(start + int(row))}: expected finite values up to {MAX_VALUE:g}, "
            f"got {part[row, column]} at position {column}"
        )
