"""One immutable, memory-mapped base of an index, searched by FAISS.

A folder with ``ids.npy`` ((N,) int64, ascending), ``flat.faiss`` (all vectors, exact) and, for
large bases, inverted lists of the same vectors in 8 bits. Rows are in id order, so that a tie by
row is a tie by id. A GPU with a copy of the vectors is searched first, exactly.

The search method is chosen by cost: exact distances for few permitted rows, inverted lists for many
rows of a large base, otherwise a scan. Candidates are always ranked by float64 distances.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from ml.errors import IndexFormatError
from ml.index.exact import SearchResult, exact_distances, nearest_of_ascending
from ml.index.files.segments.gpu_vectors import GpuVectors, vectors_on_gpu
from ml.index.files.segments.inverted_lists import (
    MAX_SCANNED_ROWS,
    InvertedLists,
    read_inverted_lists,
    write_inverted_lists,
)
from ml.index.rows import Bits, ExcludedRows, RowSet, bits_without, positions_of, selector
from ml.types import ArrayBool, ArrayF32, ArrayI64, Progress, no_progress

# FAISS' Python classes take keyword arguments that its type information does not know.
_search_parameters: Any = faiss.SearchParameters
_MAP_FLAT: int = faiss.IO_FLAG_MMAP_IFC

_MARGIN = 16
"""Rows fetched past k, to detect a tie across the cut."""
_ROUNDING = 1e-4
"""Relative tolerance between FAISS' float32 squared distances and exact ones: hundreds of times
the rounding of float32, for sums over the length of a vector."""
_TINY = float(np.finfo(np.float32).tiny)  # tolerance at distance 0
_MAX_EXACT_ROWS = 256
"""Largest number of rows whose float64 distances are computed directly, without FAISS."""
_BY_NUMBER_SHARE = 2
"""Up to one row in two, a scan by row numbers is faster than one by a bitmap."""
_OVERSAMPLING = 4
"""Candidates of 8-bit vectors per requested row, as their order is approximate."""
_CHUNK_ROWS = 65_536
"""Rows copied at once from a mapped file: 32 MB at 128 dimensions."""
_COUNT_AT = 8  # offset in the header of a FAISS file


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Segment:
    """An opened base.

    Attributes:
        ids, vectors: (N,) int64 and (N, D) float32, views of mapped files.
        flat: Flat FAISS index of the vectors.
        lists: None if the base is small.
        gpu: Vectors on a GPU; None without one, or if the base is small.
    """

    ids: ArrayI64
    vectors: ArrayF32
    flat: Any
    lists: InvertedLists | None
    gpu: GpuVectors | None = None

    @property
    def kind(self) -> str:
        """ "flat" or "ivf"."""
        return "flat" if self.lists is None else "ivf"

    def rows_of(self, ids: ArrayI64) -> ArrayI64:
        """Rows of those of ``ids`` (M,) that are in the base."""
        return positions_of(self.ids, ids)

    def search(
        self, q: ArrayF32, k: int, permitted: RowSet | None, excluded_rows: ArrayI64
    ) -> SearchResult:
        """The ``k`` nearest permitted rows.

        Args:
            permitted: Permitted rows; None for all.
            excluded_rows: (G,) rows to leave out, ascending and unique.
        """
        n_rows = len(self.ids) if permitted is None else len(permitted)
        if permitted is not None:
            positions = permitted.positions(excluded_rows)
            excluded_rows = permitted.rows[positions]
        excluded = ExcludedRows(excluded_rows, len(self.ids))
        n_permitted = n_rows - len(excluded)
        k = min(k, n_permitted)
        if k == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
        if permitted is not None and n_rows <= _MAX_EXACT_ROWS:
            distance = exact_distances(q, permitted.copies(self.vectors))
            distance[positions] = np.inf  # last: at least k other rows are left
            return nearest_of_ascending(self.ids[permitted.rows], distance, k)
        if permitted is not None and n_permitted <= _MAX_EXACT_ROWS:
            return self._rank(q, excluded.dropped(permitted.rows), k)
        if self.gpu is not None and not (permitted is not None and n_permitted <= MAX_SCANNED_ROWS):
            mask = _mask(permitted, excluded_rows, len(self.ids))
            if (candidates := self.gpu.candidates(q, k, mask)) is not None:
                return self._rank(q, candidates, k)
        if self.lists is not None and (
            listed := self._search_lists(q, k, permitted, excluded, n_permitted)
        ):
            return listed
        return self._scan(q, k, permitted, excluded, n_permitted)

    def _search_lists(
        self,
        q: ArrayF32,
        k: int,
        permitted: RowSet | None,
        excluded: ExcludedRows,
        n_permitted: int,
    ) -> SearchResult | None:
        """Search inverted lists or a subset; None if an exact search is better."""
        lists = self.lists
        if lists is None or n_permitted <= k * _OVERSAMPLING + _MARGIN:
            return None
        subset = None if permitted is None else permitted.subset(lists.subset)
        if permitted is not None and subset is None and n_permitted <= MAX_SCANNED_ROWS:
            return None
        bits, per_list = None, None
        if subset is None and permitted is not None:
            bits, per_list = permitted.bits(), permitted.per_list(lists.list_of, lists.n_lists)
        bits = excluded.masked(bits)
        times = 1 if subset is not None and subset.is_exact else _OVERSAMPLING
        n = k * times + _MARGIN + excluded.n_dropped
        while True:
            if subset is not None:
                candidates = subset.candidates(q, n, k=k, bits=bits)
            else:
                candidates = lists.candidates(q, n, k=k, bits=bits, per_list=per_list)
            rows = excluded.dropped(candidates)
            if len(rows) < k:
                return None
            ids, distance = self._rank(q, rows, len(rows))
            # A tie at the end of the candidates may continue beyond them.
            if len(candidates) < n or distance[-1] > distance[k - 1]:
                return ids[:k], distance[:k]
            n *= _OVERSAMPLING

    def _scan(
        self,
        q: ArrayF32,
        k: int,
        permitted: RowSet | None,
        excluded: ExcludedRows,
        n_permitted: int,
    ) -> SearchResult:
        bits = excluded.masked(None if permitted is None else permitted.bits())
        if permitted is None or n_permitted * _BY_NUMBER_SHARE > len(self.ids):
            parameters = None if bits is None else _search_parameters(sel=selector(bits))
        elif excluded.is_dropped:
            parameters = permitted.by_number()
        else:
            # A variable, as FAISS reads it during the search.
            numbers = np.ascontiguousarray(excluded.without(permitted.rows))
            parameters = _search_parameters(sel=faiss.IDSelectorArray(numbers))
        n_fetch = min(k + _MARGIN, n_permitted) + excluded.n_dropped
        squared, rows = self.flat.search(q[None], n_fetch, params=parameters)
        ids, distance = self._rank(q, excluded.dropped(rows[0]), k)
        # Exact, unless a row as near as the k-th may be outside the margin.
        bound = float(distance[-1]) ** 2 * (1 + _ROUNDING) + _TINY
        if k + _MARGIN >= n_permitted or squared[0, -1] > bound * (1 + _ROUNDING):
            return ids, distance
        parameters = _search_parameters(sel=selector(bits))
        _, _, rows = self.flat.range_search(q[None], bound, params=parameters)
        return self._rank(q, excluded.dropped(rows), k)

    def _rank(self, q: ArrayF32, rows: ArrayI64, k: int) -> SearchResult:
        rows = np.sort(rows)  # in id order, which is also the order in memory
        return nearest_of_ascending(self.ids[rows], exact_distances(q, self.vectors[rows]), k)


def _mask(permitted: RowSet | None, excluded_rows: ArrayI64, count: int) -> ArrayBool | None:
    bits: Bits | None = bits_without(
        None if permitted is None else permitted.bits(), excluded_rows, count
    )
    if bits is None:
        return None
    return np.unpackbits(bits, count=count, bitorder="little").view(np.bool_)


def write_segment(
    folder: Path,
    ids: ArrayI64,
    vectors: ArrayF32,
    *,
    ivf_above: int,
    gpu_above: int,
    progress: Progress = no_progress,
) -> None:
    """Write a base into the new folder ``folder``.

    Args:
        ids: (N,) int64, ascending.
        vectors: (N, D) float32, finite.
        ivf_above: Number of rows beyond which inverted lists are written.
        gpu_above: Number of rows beyond which these are made on a GPU, if there is one.
    """
    folder.mkdir(parents=True)
    np.save(folder / "ids.npy", ids)
    _write_flat(folder / "flat.faiss", vectors)
    progress(1, 2, "vectors")
    if len(ids) > ivf_above:
        write_inverted_lists(folder, vectors, progress, may_use_gpu=len(ids) > gpu_above)
    progress(2, 2, "lists")


def _write_flat(path: Path, vectors: ArrayF32) -> None:
    """Write a flat index as ``faiss.write_index`` does, without all of it in memory.

    The header, taken from an empty index, has the number of vectors and of their values.
    ``read_segment`` rejects a file with inconsistent numbers.
    """
    header = bytearray(faiss.serialize_index(faiss.IndexFlatL2(vectors.shape[1])).tobytes())
    struct.pack_into("<q", header, _COUNT_AT, len(vectors))
    struct.pack_into("<Q", header, len(header) - 8, vectors.size)
    with path.open("wb") as file:
        file.write(header)
        for start in range(0, len(vectors), _CHUNK_ROWS):  # the vectors may be a mapped file
            file.write(vectors[start : start + _CHUNK_ROWS].astype("<f4").tobytes())


def read_segment(folder: Path, *, dim: int, gpu_above: int) -> Segment:
    """Map the base in ``folder``.

    Args:
        gpu_above: Number of rows beyond which a GPU is used, if there is one.
    Raises:
        FileNotFoundError: The folder was removed by a writer of a newer version.
        IndexFormatError: A file is damaged or of another dimension.
    """
    try:
        # A plain array: each access to a memmap object costs microseconds.
        ids = np.asarray(np.load(folder / "ids.npy", mmap_mode="r"))
        flat = _map(folder / "flat.faiss", _MAP_FLAT)
    except (ValueError, EOFError, RuntimeError) as error:
        raise IndexFormatError(f"the index's file {folder.name} is damaged") from error
    if flat.d != dim or flat.ntotal != len(ids):
        raise IndexFormatError(
            f"{folder.name}: expected {len(ids)} vectors of {dim}, got {flat.ntotal} of {flat.d}"
        )
    vectors = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d).reshape(flat.ntotal, flat.d)
    gpu = vectors_on_gpu(vectors) if len(ids) > gpu_above else None
    lists = read_inverted_lists(folder, vectors)
    return Segment(ids=ids, vectors=vectors, flat=flat, lists=lists, gpu=gpu)


def _map(path: Path, flags: int) -> Any:
    if not path.exists():
        raise FileNotFoundError(2, "No such file", str(path))
    return faiss.read_index(str(path), flags | faiss.IO_FLAG_READ_ONLY)
