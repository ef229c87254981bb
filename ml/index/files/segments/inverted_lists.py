"""Inverted lists of 8-bit vectors: approximate search of large bases and of subsets of them.

The lists give candidate rows, which the caller ranks by exact distances. The number of probes is
measured when the lists are written: the smallest with the required recall. Under a filter only
lists with a permitted row count, so that rows far from the query are found too.
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
from ml.index.files.segments.centroids import fit_centroids
from ml.index.files.segments.gpu_centroids import fit_centroids_on_gpu
from ml.index.files.segments.subsets import CentroidGroups, make_subset
from ml.index.rows import Bits, Subset, selector
from ml.types import ArrayF32, ArrayI64, Progress

ArrayI32 = npt.NDArray[np.int32]

# FAISS' Python classes take keyword arguments that its type information does not know.
_parameters: Any = faiss.SearchParametersIVF
_QUANTIZER: int = faiss.ScalarQuantizer.QT_8bit

_FILE, _LIST_OF, _PROBES = "lists.faiss", "list_of.npy", "lists.json"
PER_LIST, _SEED = 64, 1
"""Training rows per centroid, fewer than FAISS' 256; and a fixed seed, for reproducible files."""
_CHUNK_ROWS = 131_072
MAX_SCANNED_ROWS = 16_384
"""Largest subset that is scanned: as fast as its lists, and exact."""
_ROWS_PER_HIT = 100
"""Smallest number of permitted rows to examine per requested row."""
_RECALL, _SAMPLE, _SAMPLE_K, _SAMPLE_SHARE = 0.998, 64, 25, 0.1
"""Required recall of the exact search's 25 nearest over a sample, without a filter and with one
row in ten permitted."""


@dataclass(frozen=True, slots=True)
class Probes:
    """Number of lists that a search visits, and the recall measured over a sample.

    Attributes:
        plain, recall: Without a filter.
        filtered, recall_filtered: With one row in ten permitted; only lists with a permitted row
            count.
    """

    plain: int
    filtered: int
    recall: float
    recall_filtered: float


class InvertedListsSubset:
    """8-bit copies of a subset of the rows of a base, in the lists of the base."""

    is_exact = False

    def __init__(self, lists: InvertedLists, index: Any, per_list: ArrayI64) -> None:
        """``index``: FAISS index of rows of the base. ``per_list``: (L,) its rows per list."""
        self._lists, self._index, self._per_list = lists, index, per_list
        self.nbytes = index.ntotal * (int(index.sa_code_size()) + per_list.itemsize)

    def candidates(self, q: ArrayF32, n: int, *, k: int, bits: Bits | None) -> ArrayI64:
        """See ``Subset``."""
        per_list = self._per_list
        return self._lists.search_lists(self._index, q, n, k=k, bits=bits, per_list=per_list)


class InvertedLists:
    """Inverted lists of all rows of one base, memory-mapped, so that processes share the pages."""

    def __init__(self, index: Any, list_of: ArrayI32, vectors: ArrayF32, probes: Probes) -> None:
        """``list_of``: (N,) int32, list of each row. ``vectors``: (N, D) float32, of the base."""
        self.index, self.list_of, self.probes = index, list_of, probes
        self.n_lists = int(index.nlist)
        self._vectors = vectors
        self._centroids: ArrayF32 = index.quantizer.reconstruct_n(0, self.n_lists)
        self._sizes = np.bincount(list_of, minlength=self.n_lists)
        self._groups: CentroidGroups | None = None

    def candidates(
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
            k: Number of exact nearest rows that should be among them.
            bits: Permitted rows; None for all.
            per_list: (L,) number of permitted rows in each list, if known.
        """
        return self.search_lists(self.index, q, n, k=k, bits=bits, per_list=per_list)

    def search_lists(
        self,
        index: Any,
        q: ArrayF32,
        n: int,
        *,
        k: int,
        bits: Bits | None,
        per_list: ArrayI64 | None,
    ) -> ArrayI64:
        """Search the lists nearest to ``q`` (D,) in ``index``, that of the base or a subset."""
        chosen = self._choose_lists(q, k, per_list)
        distance = np.empty((1, n), dtype=np.float32)
        rows = np.empty((1, n), dtype=np.int64)
        to_centres = np.zeros(len(chosen), dtype=np.float32)  # not read by FAISS here
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
        valid_rows: ArrayI64 = rows[0][rows[0] >= 0]
        return valid_rows

    def _choose_lists(self, q: ArrayF32, k: int, per_list: ArrayI64 | None) -> ArrayI64:
        """The nearest lists: the measured number, and more until they have enough rows."""
        min_lists = self.probes.plain if per_list is None else self.probes.filtered
        sizes = self._sizes if per_list is None else per_list
        far = np.empty(self.n_lists, dtype=np.float32)
        # One thread, unlike a product of NumPy: other searches use the other processors.
        faiss.fvec_L2sqr_ny(  # type: ignore[attr-defined] # its stubs lack it
            faiss.swig_ptr(far),
            faiss.swig_ptr(q),
            faiss.swig_ptr(self._centroids),
            len(q),
            self.n_lists,
        )
        if per_list is not None:
            far[per_list == 0] = np.inf
        n_lists = len(sizes) if per_list is None else int(np.count_nonzero(per_list))
        n_tried = min(2 * min_lists, n_lists)
        while True:
            near = np.argpartition(far, n_tried - 1)[:n_tried]
            near = near[np.argsort(far[near], kind="stable")]
            cumulative = np.cumsum(sizes[near])
            if cumulative[-1] >= _ROWS_PER_HIT * k or n_tried == n_lists:
                needed = int(np.searchsorted(cumulative, _ROWS_PER_HIT * k)) + 1
                return np.ascontiguousarray(near[: max(min_lists, needed)], dtype=np.int64)
            n_tried = min(4 * n_tried, n_lists)

    def subset(self, rows: ArrayI64) -> Subset:
        """Copy ``rows`` (M,) of the base into a subset that is searched separately."""
        if len(rows) <= MAX_SCANNED_ROWS:
            if self._groups is None:
                self._groups = CentroidGroups(self._centroids)
            return make_subset(self._vectors, rows, self._groups, self.list_of[rows])
        subset = faiss.IndexIVFScalarQuantizer(
            self.index.quantizer,
            self._vectors.shape[1],
            self.n_lists,
            _QUANTIZER,
            faiss.METRIC_L2,
            True,
        )
        subset.sq, subset.is_trained = self.index.sq, True
        list_of = np.asarray(self.list_of[rows], dtype=np.int64)
        for start in range(0, len(rows), _CHUNK_ROWS):
            chunk = np.ascontiguousarray(rows[start : start + _CHUNK_ROWS])
            _add_to_lists(subset, self._vectors[chunk], chunk, list_of[start : start + _CHUNK_ROWS])
        return InvertedListsSubset(self, subset, np.bincount(list_of, minlength=self.n_lists))


def max_list_count(count: int) -> int:
    """Largest number of lists for a base of ``count`` vectors."""
    return max(1, min(int(4 * np.sqrt(count)), count // 8))


def write_inverted_lists(
    folder: Path, vectors: ArrayF32, progress: Progress, *, may_use_gpu: bool = False
) -> None:
    """Write lists of ``vectors`` (N, D) into ``folder``, with the measured number of probes.

    Args:
        may_use_gpu: Fit and assign centroids on a GPU, if there is one.
    """
    count, dim = vectors.shape
    n_lists = max_list_count(count)
    rng = np.random.default_rng(_SEED)
    sample = np.sort(rng.choice(count, min(count, n_lists * PER_LIST), replace=False))
    sample_vectors = np.ascontiguousarray(vectors[sample])
    on_gpu = fit_centroids_on_gpu(sample_vectors, n_lists) if may_use_gpu else None
    centroids = on_gpu or fit_centroids(sample_vectors, n_lists)
    n_lists = len(centroids.centroids)
    quantizer = faiss.IndexFlatL2(dim)
    quantizer.add(centroids.centroids)
    index = faiss.IndexIVFScalarQuantizer(
        quantizer, dim, n_lists, _QUANTIZER, faiss.METRIC_L2, True
    )
    index.train(sample_vectors)  # only the range of the 8 bits: the quantizer has the centroids
    del sample_vectors
    list_of = np.empty(count, dtype=np.int32)
    for start in range(0, count, _CHUNK_ROWS):
        chunk = np.ascontiguousarray(vectors[start : start + _CHUNK_ROWS])
        nearest = centroids.nearest(chunk)
        _add_to_lists(index, chunk, np.arange(start, start + len(chunk)), nearest)
        list_of[start : start + len(chunk)] = nearest
        progress(start + len(chunk), count, "lists")
    faiss.write_index(index, str(folder / _FILE))
    np.save(folder / _LIST_OF, list_of)
    probes = _measure_probes(
        InvertedLists(index, list_of, vectors, Probes(1, 1, 0.0, 0.0)), vectors
    )
    write_json(folder / _PROBES, asdict(probes))


def read_inverted_lists(folder: Path, vectors: ArrayF32) -> InvertedLists | None:
    """Map the lists in ``folder``; None if there are none.

    Raises:
        IndexFormatError: The lists are damaged, or of other vectors than those of the base (N, D).
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
    return InvertedLists(index, list_of, vectors, probes)


def _add_to_lists(index: Any, vectors: ArrayF32, rows: ArrayI64, list_of: ArrayI64) -> None:
    index.add_core(
        len(rows),
        faiss.swig_ptr(np.ascontiguousarray(vectors)),
        faiss.swig_ptr(rows),
        faiss.swig_ptr(list_of),
    )


def _measure_probes(lists: InvertedLists, vectors: ArrayF32) -> Probes:
    """Measure the smallest number of probes with the required recall, for a sample of the rows."""
    count = len(vectors)
    rng = np.random.default_rng(_SEED)
    query_rows = rng.choice(count, min(count, _SAMPLE), replace=False)
    permitted = np.sort(rng.choice(count, max(1, int(count * _SAMPLE_SHARE)), replace=False))
    all_rows = np.arange(count)
    plain, recall = _min_probes(lists, vectors, query_rows, all_rows, None)
    filtered, recall_filtered = _min_probes(
        lists, vectors, query_rows, permitted, lists.list_of[permitted]
    )
    return Probes(plain, max(plain, filtered), recall, recall_filtered)


def _min_probes(
    lists: InvertedLists,
    vectors: ArrayF32,
    query_rows: ArrayI64,
    permitted: ArrayI64,
    list_of: ArrayI32 | None,
) -> tuple[int, float]:
    queries = np.ascontiguousarray(vectors[query_rows])
    truth = _nearest_rows(vectors, queries, permitted, _SAMPLE_K + 1)
    per_list = bits = None
    if list_of is not None:
        per_list = np.bincount(list_of, minlength=lists.n_lists)
        mask = np.zeros(len(vectors), dtype=np.bool_)
        mask[permitted] = True
        bits = np.packbits(mask, bitorder="little")
    n = 4 * _SAMPLE_K
    for n_probe in _probe_counts(lists.n_lists):
        lists.probes = Probes(n_probe, n_probe, 0.0, 0.0)
        recalls = [
            np.isin(rows, lists.candidates(q, n, k=_SAMPLE_K, bits=bits, per_list=per_list)).mean()
            for q, rows in zip(queries, truth, strict=True)
        ]
        if np.mean(recalls) >= _RECALL:
            break
    return n_probe, float(np.mean(recalls))


def _nearest_rows(vectors: ArrayF32, queries: ArrayF32, among: ArrayI64, k: int) -> ArrayI64:
    """Rows (Q, k) of ``among`` that are nearest to each query, a chunk at a time."""
    k = min(k, len(among))
    heap = faiss.ResultHeap(len(queries), k)
    for start in range(0, len(among), _CHUNK_ROWS):
        rows = among[start : start + _CHUNK_ROWS]
        flat = faiss.IndexFlatL2(vectors.shape[1])
        flat.add(np.ascontiguousarray(vectors[rows]))
        distance, neighbours = flat.search(queries, min(k, len(rows)))
        heap.add_result(distance, np.ascontiguousarray(rows[neighbours]))
    heap.finalize()
    return np.asarray(heap.I)


def _probe_counts(n_lists: int) -> list[int]:
    """Numbers of probes to try: 8, 12, 16, 24, 32, ..., ``n_lists``."""
    steps = [n for power in range(3, 24) for n in (2**power, 3 * 2 ** (power - 1)) if n < n_lists]
    return [*steps, n_lists]
