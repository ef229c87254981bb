"""Inverted lists of 8-bit vectors: the approximate search of large bases, and of parts of them.

The lists say where to look and propose rows; the caller measures those exactly. How many lists a
search visits was measured when they were written: the fewest that found what an exact search finds.
Under a filter only lists that hold something permitted count, so that a filter which lies far from
the query is searched where it lies.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from ml.errors import IndexFormatError
from ml.files import write_json
from ml.index.base.clusters import centres_of
from ml.index.base.gpu_centres import centres_on_gpu
from ml.index.base.parts import Groups, few_rows
from ml.index.rows import Bits, Part, selector
from ml.types import ArrayF32, ArrayI64, Progress

ArrayI32 = npt.NDArray[np.int32]

# FAISS' Python classes take keyword arguments that its type information does not know.
_parameters: Any = faiss.SearchParametersIVF
_QUANTIZER: int = faiss.ScalarQuantizer.QT_8bit

_FILE, _LIST_OF, _PROBES = "lists.faiss", "list_of.npy", "lists.json"
PER_LIST, _SEED = 64, 1
"""Rows per list that its centre is made from: fewer than FAISS' 256, for the lists only say where
to look. A fixed seed, for the same file from the same vectors."""
_CHUNK_ROWS = 131_072
SCAN_MOST = 16_384
"""This many rows are all looked at: as fast as choosing among lists, and nothing is missed."""
_ROWS_PER_HIT = 100
"""Permitted rows that are looked at for each that is asked for, at least."""
_RECALL, _SAMPLE, _SAMPLE_K, _SAMPLE_SHARE = 0.998, 64, 25, 0.1
"""What the sample has to find of the exact search's 25, plain and among one row in ten."""


@dataclass(frozen=True, slots=True)
class Probes:
    """How many lists a search visits, and what share of the exact answer that found of a sample.

    Attributes:
        plain, recall: where every row is permitted.
        filtered, recall_filtered: where one in ten is; only lists with a permitted row count.
    """

    plain: int
    filtered: int
    recall: float
    recall_filtered: float


class PartLists:
    """8-bit copies of some rows of a base, in the base's lists."""

    is_exact = False

    def __init__(self, lists: Lists, index: Any, per_list: ArrayI64) -> None:
        """``index``: FAISS', giving rows of the base. ``per_list``: (L,) its rows per list."""
        self._lists, self._index, self._per_list = lists, index, per_list
        self.nbytes = index.ntotal * (int(index.sa_code_size()) + per_list.itemsize)

    def proposed(self, q: ArrayF32, n: int, *, k: int, bits: Bits | None) -> ArrayI64:
        """As ``Lists.proposed``, among these rows."""
        per_list = self._per_list
        return self._lists.probed(self._index, q, n, k=k, bits=bits, per_list=per_list)


class Lists:
    """Opened lists of all rows of one base; mapped, so that processes share their pages."""

    def __init__(self, index: Any, list_of: ArrayI32, vectors: ArrayF32, probes: Probes) -> None:
        """``list_of``: (N,) the list of each row. ``vectors``: (N, D), the base's own."""
        self.index, self.list_of, self.probes = index, list_of, probes
        self.n_lists = int(index.nlist)
        self._vectors = vectors
        self._centres: ArrayF32 = index.quantizer.reconstruct_n(0, self.n_lists)
        self._sizes = np.bincount(list_of, minlength=self.n_lists)
        self._groups: Groups | None = None

    def proposed(
        self,
        q: ArrayF32,
        n: int,
        *,
        k: int,
        bits: Bits | None = None,
        per_list: ArrayI64 | None = None,
    ) -> ArrayI64:
        """Up to ``n`` permitted rows that may be nearest to ``q`` (D,), in no particular order.

        Args:
            k: of how many the exact nearest are wanted among them.
            bits: the permitted rows. per_list: (L,) how many of them each list has, where known.
        """
        return self.probed(self.index, q, n, k=k, bits=bits, per_list=per_list)

    def probed(
        self,
        index: Any,
        q: ArrayF32,
        n: int,
        *,
        k: int,
        bits: Bits | None,
        per_list: ArrayI64 | None,
    ) -> ArrayI64:
        """Search the lists of ``index`` that are nearest to ``q`` (D,): its own, or a part's."""
        chosen = self._chosen(q, k, per_list)
        distance = np.empty((1, n), dtype=np.float32)
        rows = np.empty((1, n), dtype=np.int64)
        to_centres = np.zeros(len(chosen), dtype=np.float32)  # not read: residuals are measured
        # The Python form of this call takes neither a selector nor a number of lists.
        index.search_preassigned_c(
            1,
            faiss.swig_ptr(q),
            n,
            faiss.swig_ptr(chosen),
            faiss.swig_ptr(to_centres),
            faiss.swig_ptr(distance),
            faiss.swig_ptr(rows),
            False,
            _parameters(sel=selector(bits), nprobe=len(chosen)),
        )
        found: ArrayI64 = rows[0][rows[0] >= 0]
        return found

    def _chosen(self, q: ArrayF32, k: int, per_list: ArrayI64 | None) -> ArrayI64:
        """The nearest lists, as many as were measured, and more until they hold enough rows."""
        least = self.probes.plain if per_list is None else self.probes.filtered
        sizes = self._sizes if per_list is None else per_list
        far = np.empty(self.n_lists, dtype=np.float32)
        # One thread, unlike a product of numpy's: the processors belong to other searches.
        faiss.fvec_L2sqr_ny(  # type: ignore[attr-defined] # its stubs lack it
            faiss.swig_ptr(far),
            faiss.swig_ptr(q),
            faiss.swig_ptr(self._centres),
            len(q),
            self.n_lists,
        )
        if per_list is not None:
            far[per_list == 0] = np.inf
        n_lists = len(sizes) if per_list is None else int(np.count_nonzero(per_list))
        tried = min(2 * least, n_lists)
        while True:
            near = np.argpartition(far, tried - 1)[:tried]
            near = near[np.argsort(far[near], kind="stable")]
            held = np.cumsum(sizes[near])
            if held[-1] >= _ROWS_PER_HIT * k or tried == n_lists:
                needed = int(np.searchsorted(held, _ROWS_PER_HIT * k)) + 1
                return np.ascontiguousarray(near[: max(least, needed)], dtype=np.int64)
            tried = min(4 * tried, n_lists)

    def part(self, rows: ArrayI64) -> Part:
        """Copies of some ``rows`` (M,) of the base, searched without looking at any other."""
        if len(rows) <= SCAN_MOST:
            if self._groups is None:
                self._groups = Groups(self._centres)
            return few_rows(self._vectors, rows, self._groups, self.list_of[rows])
        part = faiss.IndexIVFScalarQuantizer(
            self.index.quantizer,
            self._vectors.shape[1],
            self.n_lists,
            _QUANTIZER,
            faiss.METRIC_L2,
            True,
        )
        part.sq, part.is_trained = self.index.sq, True
        list_of = np.asarray(self.list_of[rows], dtype=np.int64)
        for start in range(0, len(rows), _CHUNK_ROWS):
            some = np.ascontiguousarray(rows[start : start + _CHUNK_ROWS])
            _add(part, self._vectors[some], some, list_of[start : start + _CHUNK_ROWS])
        return PartLists(self, part, np.bincount(list_of, minlength=self.n_lists))


def lists_of(count: int) -> int:
    """How many lists a base of ``count`` vectors has at most."""
    return max(1, min(int(4 * np.sqrt(count)), count // 8))


def write_lists(
    folder: Path, vectors: ArrayF32, progress: Progress, *, may_use_gpu: bool = False
) -> None:
    """Write lists of ``vectors`` (N, D) into ``folder``, and how many of them a search visits.

    Args:
        may_use_gpu: find the centres, and the nearest to each vector, on a GPU if there is one.
    """
    count, dim = vectors.shape
    n_lists = lists_of(count)
    rng = np.random.default_rng(_SEED)
    sample = np.sort(rng.choice(count, min(count, n_lists * PER_LIST), replace=False))
    known = np.ascontiguousarray(vectors[sample])
    on_gpu = centres_on_gpu(known, n_lists) if may_use_gpu else None
    centres = on_gpu or centres_of(known, n_lists)
    n_lists = len(centres.centres)
    quantizer = faiss.IndexFlatL2(dim)
    quantizer.add(centres.centres)
    index = faiss.IndexIVFScalarQuantizer(
        quantizer, dim, n_lists, _QUANTIZER, faiss.METRIC_L2, True
    )
    index.train(known)  # the lists' centres are there: what is left is the range of 8 bits
    del known
    list_of = np.empty(count, dtype=np.int32)
    for start in range(0, count, _CHUNK_ROWS):
        some = np.ascontiguousarray(vectors[start : start + _CHUNK_ROWS])
        nearest = centres.nearest(some)
        _add(index, some, np.arange(start, start + len(some)), nearest)
        list_of[start : start + len(some)] = nearest
        progress(start + len(some), count, "lists")
    faiss.write_index(index, str(folder / _FILE))
    np.save(folder / _LIST_OF, list_of)
    probes = _measured(Lists(index, list_of, vectors, Probes(1, 1, 0.0, 0.0)), vectors)
    write_json(folder / _PROBES, asdict(probes))


def read_lists(folder: Path, vectors: ArrayF32) -> Lists | None:
    """Map the lists in ``folder``; None if there are none.

    Raises:
        IndexFormatError: they are damaged, or of other vectors than the base's (N, D).
    """
    if not (folder / _FILE).exists():
        return None
    try:
        index = faiss.read_index(str(folder / _FILE), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
        list_of = np.asarray(np.load(folder / _LIST_OF, mmap_mode="r"))
        probes = Probes(**json.loads((folder / _PROBES).read_text(encoding="utf-8")))
    except (ValueError, TypeError, EOFError, RuntimeError) as error:
        raise IndexFormatError(f"the index's lists in {folder.name} are damaged") from error
    if (index.ntotal, index.d) != vectors.shape or len(list_of) != len(vectors):
        raise IndexFormatError(
            f"{folder.name}: expected lists of {vectors.shape}, got {index.ntotal} of {index.d}"
        )
    return Lists(index, list_of, vectors, probes)


def _add(index: Any, vectors: ArrayF32, rows: ArrayI64, list_of: ArrayI64) -> None:
    index.add_core(
        len(rows),
        faiss.swig_ptr(np.ascontiguousarray(vectors)),
        faiss.swig_ptr(rows),
        faiss.swig_ptr(list_of),
    )


def _measured(lists: Lists, vectors: ArrayF32) -> Probes:
    """The fewest lists that find what an exact search finds, of a sample of the rows themselves."""
    count = len(vectors)
    rng = np.random.default_rng(_SEED)
    asked = rng.choice(count, min(count, _SAMPLE), replace=False)
    some = np.sort(rng.choice(count, max(1, int(count * _SAMPLE_SHARE)), replace=False))
    every = np.arange(count)
    plain, recall = _fewest(lists, vectors, asked, every, None)
    filtered, recall_filtered = _fewest(lists, vectors, asked, some, lists.list_of[some])
    return Probes(plain, max(plain, filtered), recall, recall_filtered)


def _fewest(
    lists: Lists, vectors: ArrayF32, asked: ArrayI64, some: ArrayI64, list_of: ArrayI32 | None
) -> tuple[int, float]:
    queries = np.ascontiguousarray(vectors[asked])
    truth = _exact(vectors, queries, some, _SAMPLE_K + 1)
    per_list = bits = None
    if list_of is not None:
        per_list = np.bincount(list_of, minlength=lists.n_lists)
        mask = np.zeros(len(vectors), dtype=np.bool_)
        mask[some] = True
        bits = np.packbits(mask, bitorder="little")
    n = 4 * _SAMPLE_K
    for n_probe in _ladder(lists.n_lists):
        lists.probes = Probes(n_probe, n_probe, 0.0, 0.0)
        found = [
            np.isin(one, lists.proposed(q, n, k=_SAMPLE_K, bits=bits, per_list=per_list)).mean()
            for q, one in zip(queries, truth, strict=True)
        ]
        if np.mean(found) >= _RECALL:
            break
    return n_probe, float(np.mean(found))


def _exact(vectors: ArrayF32, queries: ArrayF32, some: ArrayI64, k: int) -> ArrayI64:
    """(Q, k) rows among ``some`` that are nearest to each query, a chunk at a time."""
    k = min(k, len(some))
    heap = faiss.ResultHeap(len(queries), k)
    for start in range(0, len(some), _CHUNK_ROWS):
        rows = some[start : start + _CHUNK_ROWS]
        flat = faiss.IndexFlatL2(vectors.shape[1])
        flat.add(np.ascontiguousarray(vectors[rows]))
        distance, found = flat.search(queries, min(k, len(rows)))
        heap.add_result(distance, np.ascontiguousarray(rows[found]))
    heap.finalize()
    return np.asarray(heap.I)


def _ladder(n_lists: int) -> list[int]:
    """8, 12, 16, 24, 32, ... and at last every list."""
    steps = [n for power in range(3, 24) for n in (2**power, 3 * 2 ** (power - 1)) if n < n_lists]
    return [*steps, n_lists]
