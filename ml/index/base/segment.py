"""One immutable, memory-mapped base of an index, searched by FAISS.

A folder with ``ids.npy`` ((N,) int64, ascending), ``flat.faiss`` (every vector, exact) and, for
large bases, lists of the same vectors in 8 bits (``lists``). Row order is id order, so
that a tie by row is a tie by id. Where a GPU holds the vectors too, it is searched first, and
exactly.

What is looked at is chosen by cost. Few permitted rows are all measured, many of a large base are
looked for in lists, and what is left is scanned. Whoever proposes rows, they are measured in
float64 here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from ml.errors import IndexFormatError
from ml.index.base.gpu import GpuRows, rows_on_gpu
from ml.index.base.lists import SCAN_MOST, Lists, read_lists, write_lists
from ml.index.exact import Found, exact_distances, nearest_of_ascending
from ml.index.rows import Bits, LeftOut, RowSet, bits_without, places_of, selector
from ml.types import ArrayBool, ArrayF32, ArrayI64, Progress, no_progress

# FAISS' Python classes take keyword arguments that its type information does not know.
_search_parameters: Any = faiss.SearchParameters
_MAP_FLAT: int = faiss.IO_FLAG_MMAP_IFC

_MARGIN = 16
"""Rows fetched past k, to see whether a tie stands across the cut; a longer tie is looked up."""
_ROUNDING = 1e-4
"""Relative slack between FAISS' float32 squared distances and the exact ones: hundreds of times
float32's own rounding, for sums over a vector's length."""
_TINY = float(np.finfo(np.float32).tiny)  # of an exact hit, whose distance is nothing
_MEASURED_MOST = 256
"""So few rows are measured in float64 at once, without FAISS."""
_BY_NUMBER_SHARE = 2
"""Up to every second row, a scan by row numbers is faster than one that tests a bit a row."""
_OVERSAMPLING = 4
"""Rows taken from 8-bit vectors for each that is asked for: their order is only nearly right."""
_CHUNK_ROWS = 65_536
"""Rows copied at once from a mapped file: 32 MB at 128 dimensions."""
_COUNT_AT = 8  # in the head of FAISS' file, behind its four letters and the dimension


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Segment:
    """An opened base. ``ids`` (N,), ``vectors`` (N, D) are views of mapped files.

    ``lists`` are None if the base is small. ``gpu`` has the vectors on a GPU; None
    if there is none, or the base is small.
    """

    ids: ArrayI64
    vectors: ArrayF32
    flat: Any
    lists: Lists | None
    gpu: GpuRows | None = None

    @property
    def kind(self) -> str:
        """ "flat" or "ivf"."""
        return "flat" if self.lists is None else "ivf"

    def rows_of(self, ids: ArrayI64) -> ArrayI64:
        """Rows of those ``ids`` (M,) that the base holds."""
        return places_of(self.ids, ids)

    def search(self, q: ArrayF32, k: int, chosen: RowSet | None, gone: ArrayI64) -> Found:
        """The ``k`` nearest rows of ``chosen`` (None: of all) that are not in ``gone``.

        Args:
            gone: (G,) rows, ascending and unique.
        """
        held = len(self.ids) if chosen is None else len(chosen)
        if chosen is not None:
            places = chosen.places(gone)
            gone = chosen.rows[places]
        left_out = LeftOut(gone, len(self.ids))
        n_permitted = held - len(left_out)
        k = min(k, n_permitted)
        if k == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
        if chosen is not None and held <= _MEASURED_MOST:
            distance = exact_distances(q, chosen.copies(self.vectors))
            distance[places] = np.inf  # behind the k: at least as many others are left
            return nearest_of_ascending(self.ids[chosen.rows], distance, k)
        if chosen is not None and n_permitted <= _MEASURED_MOST:
            return self._ranked(q, left_out.dropped(chosen.rows), k)
        if self.gpu is not None and not (chosen is not None and n_permitted <= SCAN_MOST):
            mask = _mask(chosen, gone, len(self.ids))
            if (proposed := self.gpu.proposed(q, k, mask)) is not None:
                return self._ranked(q, proposed, k)
        if self.lists is not None and (found := self._listed(q, k, chosen, left_out, n_permitted)):
            return found
        return self._scanned(q, k, chosen, left_out, n_permitted)

    def _listed(
        self, q: ArrayF32, k: int, chosen: RowSet | None, left_out: LeftOut, n_permitted: int
    ) -> Found | None:
        """By lists or copies; None if an exact search of the rows is the better way."""
        lists = self.lists
        if lists is None or n_permitted <= k * _OVERSAMPLING + _MARGIN:
            return None
        part = None if chosen is None else chosen.part(lists.part)
        if chosen is not None and part is None and n_permitted <= SCAN_MOST:
            return None
        bits, per_list = None, None
        if part is None and chosen is not None:
            bits, per_list = chosen.bits(), chosen.per_list(lists.list_of, lists.n_lists)
        bits = left_out.masked(bits)
        times = 1 if part is not None and part.is_exact else _OVERSAMPLING
        n = k * times + _MARGIN + left_out.n_dropped
        while True:
            if part is not None:
                proposed = part.proposed(q, n, k=k, bits=bits)
            else:
                proposed = lists.proposed(q, n, k=k, bits=bits, per_list=per_list)
            kept = left_out.dropped(proposed)
            if len(kept) < k:
                return None
            ids, distance = self._ranked(q, kept, len(kept))
            # A tie that reaches the end of what was proposed goes on behind it.
            if len(proposed) < n or distance[-1] > distance[k - 1]:
                return ids[:k], distance[:k]
            n *= _OVERSAMPLING

    def _scanned(
        self, q: ArrayF32, k: int, chosen: RowSet | None, left_out: LeftOut, n_permitted: int
    ) -> Found:
        bits = left_out.masked(None if chosen is None else chosen.bits())
        if chosen is None or n_permitted * _BY_NUMBER_SHARE > len(self.ids):
            parameters = None if bits is None else _search_parameters(sel=selector(bits))
        elif left_out.is_dropped:
            parameters = chosen.by_number()
        else:
            # Kept in a name of its own: FAISS reads it while it searches.
            numbers = np.ascontiguousarray(left_out.without(chosen.rows))
            parameters = _search_parameters(sel=faiss.IDSelectorArray(numbers))
        n_fetch = min(k + _MARGIN, n_permitted) + left_out.n_dropped
        squared, rows = self.flat.search(q[None], n_fetch, params=parameters)
        ids, distance = self._ranked(q, left_out.dropped(rows[0]), k)
        # Exact, unless something as near as the k-th may have been left outside the margin.
        bound = float(distance[-1]) ** 2 * (1 + _ROUNDING) + _TINY
        if k + _MARGIN >= n_permitted or squared[0, -1] > bound * (1 + _ROUNDING):
            return ids, distance
        parameters = _search_parameters(sel=selector(bits))
        _, _, rows = self.flat.range_search(q[None], bound, params=parameters)
        return self._ranked(q, left_out.dropped(rows), k)

    def _ranked(self, q: ArrayF32, rows: ArrayI64, k: int) -> Found:
        rows = np.sort(rows)  # so do their ids; and memory is read in its order
        return nearest_of_ascending(self.ids[rows], exact_distances(q, self.vectors[rows]), k)


def _mask(chosen: RowSet | None, gone: ArrayI64, count: int) -> ArrayBool | None:
    bits: Bits | None = bits_without(None if chosen is None else chosen.bits(), gone, count)
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
        ids: (N,) int64 ascending. vectors: (N, D) float32, finite.
        ivf_above: more rows than this get inverted lists as well.
        gpu_above: the lists of more rows than this are made on a GPU, where there is one.
    """
    folder.mkdir(parents=True)
    np.save(folder / "ids.npy", ids)
    _write_flat(folder / "flat.faiss", vectors)
    progress(1, 2, "vectors")
    if len(ids) > ivf_above:
        write_lists(folder, vectors, progress, may_use_gpu=len(ids) > gpu_above)
    progress(2, 2, "lists")


def _write_flat(path: Path, vectors: ArrayF32) -> None:
    """What ``faiss.write_index`` writes of a flat index, without all of it in memory at once.

    Its file is a head with the number of vectors and, at the end, that of their values; an empty
    index gives the head. ``read_segment`` refuses a file in which they are not as they should be.
    """
    head = bytearray(faiss.serialize_index(faiss.IndexFlatL2(vectors.shape[1])).tobytes())
    struct.pack_into("<q", head, _COUNT_AT, len(vectors))
    struct.pack_into("<Q", head, len(head) - 8, vectors.size)
    with path.open("wb") as file:
        file.write(head)
        for start in range(0, len(vectors), _CHUNK_ROWS):  # the vectors may be a mapped file
            file.write(vectors[start : start + _CHUNK_ROWS].astype("<f4").tobytes())


def read_segment(folder: Path, *, dim: int, gpu_above: int) -> Segment:
    """Map the base in ``folder``.

    Args:
        gpu_above: more rows than this are searched on a GPU, where there is one.
    Raises:
        FileNotFoundError: the folder is gone (a newer version took its place).
        IndexFormatError: a file is damaged or of another dimension.
    """
    try:
        # Without the class of mapped arrays, each look into which costs microseconds.
        ids = np.asarray(np.load(folder / "ids.npy", mmap_mode="r"))
        flat = _mapped(folder / "flat.faiss", _MAP_FLAT)
    except (ValueError, EOFError, RuntimeError) as error:
        raise IndexFormatError(f"the index's file {folder.name} is damaged") from error
    if flat.d != dim or flat.ntotal != len(ids):
        raise IndexFormatError(
            f"{folder.name}: expected {len(ids)} vectors of {dim}, got {flat.ntotal} of {flat.d}"
        )
    vectors = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d).reshape(flat.ntotal, flat.d)
    gpu = rows_on_gpu(vectors) if len(ids) > gpu_above else None
    lists = read_lists(folder, vectors)
    return Segment(ids=ids, vectors=vectors, flat=flat, lists=lists, gpu=gpu)


def _mapped(path: Path, flags: int) -> Any:
    if not path.exists():
        raise FileNotFoundError(2, "No such file", str(path))
    return faiss.read_index(str(path), flags | faiss.IO_FLAG_READ_ONLY)
