"""Exact search of a large base on a GPU, if FAISS was built with GPU support.

FAISS' GPU indexes have no selectors and round differently from the CPU. A search returns candidate
rows, more than requested, which the caller ranks by float64 distances. If the candidates may lack a
row that the CPU would find, there are none, and the CPU searches.
"""

from __future__ import annotations

import logging
from typing import Any

import faiss
import numpy as np

from ml.gpu import memory_bound_gib, select_gpu
from ml.index.exact import exact_distances
from ml.types import ArrayBool, ArrayF32, ArrayI64

logger = logging.getLogger(__name__)

MAX_ROWS = 2_048
"""Largest result of one search by FAISS' GPU kernels."""
_MARGIN = 32
"""Rows fetched past k, for ties and rows that rounding misplaces."""
_OVERSAMPLING = 1.5
"""Factor on the rows fetched under a mask: permitted rows may be spread unevenly."""
_ROUNDING = 2.0**-16
"""Error of a squared distance relative to the squared lengths: float32 products have an error of
2**-24 each, and some hundred are summed."""
_TEMPORARY_BYTES = 256 << 20
"""Largest temporary memory of FAISS on the GPU; its default is 1.5 GiB."""
_CHUNK_ROWS = 65_536  # per copy, so that the base is not in memory twice


class GpuVectors:
    """The vectors of one base on a GPU."""

    def __init__(self, index: Any, vectors: ArrayF32) -> None:
        """``index``: flat FAISS index of ``vectors`` (N, D), in row order."""
        self._index, self._vectors = index, vectors
        self._largest = _largest_squared_length(vectors)

    def candidates(self, q: ArrayF32, k: int, mask: ArrayBool | None) -> ArrayI64 | None:
        """Rows that include the ``k`` nearest permitted ones; None if that is not certain.

        Args:
            q: (D,) float32.
            k: At least 1, and at most the number of permitted rows.
            mask: (N,) bool, permitted rows; None for all.
        """
        count = len(self._vectors)
        share = 1.0 if mask is None else mask.sum() / count
        fetch = k + _MARGIN if mask is None else int(_OVERSAMPLING * k / share) + _MARGIN
        slack = _ROUNDING * (float(np.square(q, dtype=np.float64).sum()) + self._largest)
        while True:
            fetch = min(fetch, count, MAX_ROWS)
            squared, neighbours = self._index.search(q[None], fetch)
            rows: ArrayI64 = neighbours[0] if mask is None else neighbours[0][mask[neighbours[0]]]
            if len(rows) >= k:
                kth = np.partition(exact_distances(q, self._vectors[rows]), k - 1)[k - 1]
                if fetch == count or squared[0, -1] > kth**2 + slack:
                    return rows
            if fetch == MAX_ROWS:
                return None
            fetch *= 4


def vectors_on_gpu(vectors: ArrayF32) -> GpuVectors | None:
    """Copy vectors (N, D) to the configured GPU; None without one, or without room on it.

    Raises:
        BadInputError: The environment names a device that does not exist.
    """
    index = gpu_flat_index(vectors.shape[1], nbytes=vectors.nbytes)
    if index is None:
        return None
    try:
        for start in range(0, len(vectors), _CHUNK_ROWS):
            index.add(np.ascontiguousarray(vectors[start : start + _CHUNK_ROWS]))
    except RuntimeError:
        logger.warning("index: the GPU cannot hold %d vectors", len(vectors), exc_info=True)
        return None
    return GpuVectors(index, vectors)


def gpu_flat_index(dim: int, *, nbytes: int) -> Any | None:
    """Create an empty flat index on the configured GPU; None without one, or without room on it.

    Args:
        nbytes: Expected size, compared with ``TESSERA_GPU_MEMORY_GIB``.
    Raises:
        BadInputError: The environment names a device that does not exist.
    """
    gpus = faiss.get_num_gpus()
    number = select_gpu(None, gpus) if gpus else None
    if number is None:
        return None
    bound = memory_bound_gib()
    if bound is not None and nbytes + _TEMPORARY_BYTES > bound * 2**30:
        logger.warning("index: %d bytes are more than TESSERA_GPU_MEMORY_GIB", nbytes)
        return None
    module: Any = faiss  # the parts for a GPU are not in the build for processors
    try:
        resources = module.StandardGpuResources()
        resources.setTempMemory(_TEMPORARY_BYTES)
        config = module.GpuIndexFlatConfig()
        config.device = number
        return module.GpuIndexFlatL2(resources, dim, config)
    except RuntimeError:
        logger.warning("index: the GPU has not enough memory", exc_info=True)
        return None


def _largest_squared_length(vectors: ArrayF32) -> float:
    parts = range(0, len(vectors), _CHUNK_ROWS)
    return max(
        float(np.square(vectors[start : start + _CHUNK_ROWS], dtype=np.float64).sum(axis=1).max())
        for start in parts
    )
