"""One immutable, memory-mapped base of an index, searched by FAISS.

A folder with ``ids.npy`` ((N,) int64, ascending), ``flat.faiss`` (every vector, exact) and, for
large bases, ``ivf.faiss`` (the same vectors in inverted lists). Row order is id order, so that a
tie by row is a tie by id. Where a GPU holds the vectors too, it is searched first, and exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from ml.errors import IndexFormatError
from ml.index.exact import Found, exact_distances, nearest
from ml.index.gpu import GpuRows, rows_on_gpu, train_on_gpu
from ml.types import ArrayBool, ArrayF32, ArrayI64, Progress, no_progress

# FAISS' Python classes take keyword arguments that its type information does not know.
_search_parameters: Any = faiss.SearchParameters
_ivf_search_parameters: Any = faiss.SearchParametersIVF
_bitmap_selector: Any = faiss.IDSelectorBitmap
_MAP_FLAT: int = faiss.IO_FLAG_MMAP_IFC

_MARGIN = 16
"""Rows fetched past k, to see whether a tie stands across the cut; a longer tie is looked up."""
_ROUNDING = 1e-4
"""Relative slack between FAISS' float32 squared distances and the exact ones: hundreds of times
float32's own rounding, for sums over a vector's length."""
_IVF_PROBE_SHARE, _LEAST_PROBES = 8, 8
"""One list in eight is visited, and eight at least: an eighth of the work, for rows missed."""
_SCAN_SHARE = 20
"""Where at most one row in twenty is permitted, those rows are scanned: faster, and exact."""
_TRAIN_PER_LIST, _TRAIN_ITERATIONS, _TRAIN_SEED = 64, 10, 1
"""Of the k-means that makes the lists: fewer rows and rounds than FAISS' 256 and 25, for the lists
only say where to look; a fixed seed, for the same file from the same vectors."""


@dataclass(frozen=True, slots=True)
class Segment:
    """An opened base. ``ids`` (N,), ``vectors`` (N, D) are views of mapped files.

    ``gpu`` has the vectors on a GPU; None where there is none, or the base is small.
    """

    ids: ArrayI64
    vectors: ArrayF32
    flat: Any
    ivf: Any | None
    gpu: GpuRows | None = None

    @property
    def kind(self) -> str:
        """ "flat" or "ivf"."""
        return "flat" if self.ivf is None else "ivf"

    def rows_of(self, ids: ArrayI64) -> ArrayI64:
        """Rows of those ``ids`` (M,) that the base holds."""
        if not len(ids) or not len(self.ids):
            return np.empty(0, dtype=np.int64)
        rows = np.searchsorted(self.ids, ids)
        inside = rows < len(self.ids)
        rows, ids = rows[inside], ids[inside]
        result: ArrayI64 = rows[self.ids[rows] == ids]
        return result

    def search(self, q: ArrayF32, k: int, mask: ArrayBool | None) -> Found:
        """The ``k`` nearest rows where ``mask`` (N,) is True (None: all rows)."""
        n_permitted = len(self.ids) if mask is None else int(mask.sum())
        k = min(k, n_permitted)
        if k == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
        if mask is not None and n_permitted * _SCAN_SHARE <= len(self.ids):
            return self._ranked(q, np.flatnonzero(mask), k)
        if self.gpu is not None and (rows := self.gpu.proposed(q, k, mask)) is not None:
            return self._ranked(q, rows, k)
        if self.ivf is not None:
            found = self._search_ivf(q, k, mask)
            if len(found[0]) == k:
                return found
        return self._search_flat(q, k, mask, n_permitted)

    def _search_flat(self, q: ArrayF32, k: int, mask: ArrayBool | None, n_permitted: int) -> Found:
        n_fetch = min(k + _MARGIN, n_permitted)
        squared, rows = self.flat.search(q[None], n_fetch, params=_parameters(mask))
        ids, distance = self._ranked(q, rows[0], k)
        # Exact, unless something as near as the k-th may have been left outside the margin.
        bound = float(distance[-1]) ** 2 * (1 + _ROUNDING) + np.finfo(np.float32).tiny
        if n_fetch == n_permitted or squared[0, -1] > bound * (1 + _ROUNDING):
            return ids, distance
        _, _, rows = self.flat.range_search(q[None], bound, params=_parameters(mask))
        return self._ranked(q, rows, k)

    def _search_ivf(self, q: ArrayF32, k: int, mask: ArrayBool | None) -> Found:
        n_probe = max(_LEAST_PROBES, self.ivf.nlist // _IVF_PROBE_SHARE)  # type: ignore[union-attr]
        parameters = _ivf_search_parameters(sel=_selector(mask), nprobe=n_probe)
        _, rows = self.ivf.search(q[None], k + _MARGIN, params=parameters)  # type: ignore[union-attr]
        return self._ranked(q, rows[0][rows[0] >= 0], k)

    def _ranked(self, q: ArrayF32, rows: ArrayI64, k: int) -> Found:
        return nearest(self.ids[rows], exact_distances(q, self.vectors[rows]), k)


def _parameters(mask: ArrayBool | None) -> Any:
    return _search_parameters(sel=_selector(mask))


def _selector(mask: ArrayBool | None) -> Any:
    return None if mask is None else _bitmap_selector(np.packbits(mask, bitorder="little"))


def write_segment(
    folder: Path,
    ids: ArrayI64,
    vectors: ArrayF32,
    *,
    ivf_above: int,
    progress: Progress = no_progress,
) -> None:
    """Write a base into the new folder ``folder``.

    Args:
        ids: (N,) int64 ascending. vectors: (N, D) float32, finite.
        ivf_above: more rows than this get inverted lists as well.
    """
    folder.mkdir(parents=True)
    np.save(folder / "ids.npy", ids)
    flat = faiss.IndexFlatL2(vectors.shape[1])
    flat.add(vectors)
    faiss.write_index(flat, str(folder / "flat.faiss"))
    progress(1, 2, "vectors")
    if len(ids) > ivf_above:
        faiss.write_index(_trained_ivf(vectors), str(folder / "ivf.faiss"))
    progress(2, 2, "lists")


def _trained_ivf(vectors: ArrayF32) -> Any:
    n_lists = max(1, int(2 * np.sqrt(len(vectors))))
    quantizer = faiss.IndexFlatL2(vectors.shape[1])
    ivf = faiss.IndexIVFFlat(quantizer, vectors.shape[1], n_lists)
    ivf.cp.max_points_per_centroid = _TRAIN_PER_LIST
    ivf.cp.niter = _TRAIN_ITERATIONS
    ivf.cp.seed = _TRAIN_SEED
    train_on_gpu(ivf, vectors.shape[1])
    ivf.train(vectors)
    ivf.add(vectors)
    return ivf


def read_segment(folder: Path, *, dim: int, gpu_above: int) -> Segment:
    """Map the base in ``folder``.

    Args:
        gpu_above: more rows than this are searched on a GPU, where there is one.
    Raises:
        FileNotFoundError: the folder is gone (a newer version took its place).
        IndexFormatError: a file is damaged or of another dimension.
    """
    try:
        ids = np.load(folder / "ids.npy", mmap_mode="r")
        flat = _mapped(folder / "flat.faiss", _MAP_FLAT)
        has_ivf = (folder / "ivf.faiss").exists()
        ivf = _mapped(folder / "ivf.faiss", faiss.IO_FLAG_MMAP) if has_ivf else None
    except (ValueError, EOFError, RuntimeError) as error:
        raise IndexFormatError(f"the index's file {folder.name} is damaged") from error
    if flat.d != dim or flat.ntotal != len(ids) or (ivf and ivf.ntotal != len(ids)):
        raise IndexFormatError(
            f"{folder.name}: expected {len(ids)} vectors of {dim}, got {flat.ntotal} of {flat.d}"
        )
    vectors = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d).reshape(flat.ntotal, flat.d)
    gpu = rows_on_gpu(vectors) if len(ids) > gpu_above else None
    return Segment(ids=ids, vectors=vectors, flat=flat, ivf=ivf, gpu=gpu)


def _mapped(path: Path, flags: int) -> Any:
    if not path.exists():
        raise FileNotFoundError(2, "No such file", str(path))
    return faiss.read_index(str(path), flags | faiss.IO_FLAG_READ_ONLY)
