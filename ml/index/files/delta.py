"""Log of the changes since a base was built: small, replayed completely, searched exactly.

A file of fixed-size records. Only the records that the manifest counts are part of a version. A
crashed writer may leave further ones; the next writer truncates them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ml.errors import IndexFormatError
from ml.types import ArrayF32, ArrayI64

_ADD, _REMOVE = 1, 2  # not 0, the value of a hole in the file


@dataclass(frozen=True, slots=True)
class Delta:
    """The replayed log.

    Attributes:
        ids, vectors: (M,) int64 ascending and (M, D) float32, added and not removed again.
        changed_ids: (R,) int64 ascending, all ids in the log; their rows of the base are masked.
    """

    ids: ArrayI64
    vectors: ArrayF32
    changed_ids: ArrayI64


def _record_type(dim: int) -> np.dtype[Any]:
    return np.dtype([("id", "<i8"), ("op", "<i8"), ("vector", "<f4", (dim,))])


def addition_records(ids: ArrayI64, vectors: ArrayF32) -> np.ndarray[Any, Any]:
    """Records that add ``ids`` (N,) with ``vectors`` (N, D)."""
    records = np.zeros(len(ids), dtype=_record_type(vectors.shape[1]))
    records["id"], records["op"], records["vector"] = ids, _ADD, vectors
    return records


def removal_records(ids: ArrayI64, dim: int) -> np.ndarray[Any, Any]:
    """Records that remove ``ids`` (N,)."""
    records = np.zeros(len(ids), dtype=_record_type(dim))
    records["id"], records["op"] = ids, _REMOVE
    return records


def append_records(path: Path, records: np.ndarray[Any, Any], *, n_committed: int) -> None:
    """Write ``records`` after the first ``n_committed`` ones and flush them to disk."""
    with path.open("ab") as stream:
        stream.truncate(n_committed * records.dtype.itemsize)
        stream.write(records.tobytes())
        stream.flush()
        os.fsync(stream.fileno())


def read_delta(path: Path, *, dim: int, n_records: int) -> Delta:
    """Replay the first ``n_records`` records.

    Raises:
        FileNotFoundError: The file was removed by a writer of a newer version.
        IndexFormatError: The file is shorter than the manifest says.
    """
    dtype = _record_type(dim)
    if n_records == 0:
        records = np.empty(0, dtype=dtype)
    else:
        records = np.fromfile(path, dtype=dtype, count=n_records)
    if len(records) != n_records:
        raise IndexFormatError(
            f"{path.name}: expected {n_records} records of {dtype.itemsize} bytes, "
            f"got {len(records)}"
        )
    # The last record of an id decides.
    changed_ids, from_end = np.unique(records["id"][::-1], return_index=True)
    last = records[::-1][from_end]
    additions = last[last["op"] == _ADD]
    return Delta(
        ids=np.ascontiguousarray(additions["id"]),
        vectors=np.ascontiguousarray(additions["vector"]),
        changed_ids=changed_ids,
    )
