"""A base's vectors on a GPU: the exact search of large bases, where FAISS was built for one.

FAISS' GPU indexes know no selectors and round otherwise than the processor. So a search here only
proposes rows, more than are asked for; the caller measures them in float64. Where the proposal
cannot be shown to hold every row that the processor would find, there is none, and the processor
searches.
"""

from __future__ import annotations

import logging
from typing import Any

import faiss
import numpy as np

from ml.gpu import gpu_asked, memory_bound_gib
from ml.index.exact import exact_distances
from ml.types import ArrayBool, ArrayF32, ArrayI64

logger = logging.getLogger(__name__)

MOST_ROWS = 2_048
"""The most rows that FAISS' GPU kernels select in one search."""
_MARGIN = 32
"""Rows fetched past k, before any are masked: for ties, and for rows that rounding misplaces."""
_OVERSAMPLING = 1.5
"""More rows than a mask's share asks for: what is permitted need not be spread evenly."""
_ROUNDING = 2.0**-16
"""Error of a squared distance against the squared lengths it is the difference of: float32 keeps
2**-24 of each product, and some hundred products are summed."""
_TEMPORARY_BYTES = 256 << 20
"""What FAISS may keep on the GPU for its own work; its default is 1.5 GiB."""
_CHUNK_ROWS = 65_536  # copied at a time: a base of millions is never held twice


class GpuRows:
    """The vectors of one base on a GPU."""

    def __init__(self, index: Any, vectors: ArrayF32) -> None:
        """``index``: a flat index of FAISS with ``vectors`` (N, D) in the order of their rows."""
        self._index, self._vectors = index, vectors
        self._largest = _largest_squared_length(vectors)

    def proposed(self, q: ArrayF32, k: int, mask: ArrayBool | None) -> ArrayI64 | None:
        """Rows among which are the ``k`` nearest that ``mask`` permits; None if that is unsure.

        Args:
            q: (D,). k: at least 1, and no more than the mask permits. mask: (N,), None for all.
        """
        count = len(self._vectors)
        share = 1.0 if mask is None else mask.sum() / count
        fetch = k + _MARGIN if mask is None else int(_OVERSAMPLING * k / share) + _MARGIN
        slack = _ROUNDING * (float(np.square(q, dtype=np.float64).sum()) + self._largest)
        while True:
            fetch = min(fetch, count, MOST_ROWS)
            squared, found = self._index.search(q[None], fetch)
            rows: ArrayI64 = found[0] if mask is None else found[0][mask[found[0]]]
            if len(rows) >= k:
                kth = np.partition(exact_distances(q, self._vectors[rows]), k - 1)[k - 1]
                if fetch == count or squared[0, -1] > kth**2 + slack:
                    return rows
            if fetch == MOST_ROWS:
                return None
            fetch *= 4


def rows_on_gpu(vectors: ArrayF32) -> GpuRows | None:
    """The vectors (N, D) on the chosen GPU; None if there is none, or no room on it.

    Raises:
        BadInputError: the environment names a device that is not there.
    """
    index = flat_on_gpu(vectors.shape[1], nbytes=vectors.nbytes)
    if index is None:
        return None
    try:
        for start in range(0, len(vectors), _CHUNK_ROWS):
            index.add(np.ascontiguousarray(vectors[start : start + _CHUNK_ROWS]))
    except RuntimeError:
        logger.warning("index: the GPU cannot hold %d vectors", len(vectors), exc_info=True)
        return None
    return GpuRows(index, vectors)


def flat_on_gpu(dim: int, *, nbytes: int) -> Any | None:
    """An empty flat index of FAISS on the chosen GPU; None if there is none, or no room.

    Args:
        nbytes: what it is to hold, compared with ``TESSERA_GPU_MEMORY_GIB``.
    Raises:
        BadInputError: the environment names a device that is not there.
    """
    gpus = faiss.get_num_gpus()
    number = gpu_asked(None, gpus) if gpus else None
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
