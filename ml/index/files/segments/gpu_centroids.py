"""Centroids of the inverted lists fitted and assigned on a GPU, if FAISS has GPU support.

A GPU compares a vector with all centroids sooner than a CPU with a few: no groups are needed, and
the assignment is exact. The lists differ from those of a CPU; their number of probes is measured
either way.
"""

from __future__ import annotations

import logging
from typing import Any

import faiss
import numpy as np

from ml.index.files.segments.centroids import POINTS, ROUNDS, SEED, Centroids
from ml.index.files.segments.gpu_vectors import gpu_flat_index
from ml.types import ArrayF32, ArrayI64

logger = logging.getLogger(__name__)

_BATCH, _MIN_BATCH = 131_072, 1_024
"""Vectors per batch, halved while they do not fit; below the minimum the CPU takes over."""


class GpuCentroids:
    """Centroids (L, D) float32 on a GPU, with a fallback to the CPU if it fails."""

    def __init__(self, centroids: ArrayF32, index: Any) -> None:
        """``index``: flat FAISS index of the centroids."""
        self.centroids, self._index = centroids, index
        self._batch = _BATCH
        self._fallback: Centroids | None = None

    def nearest(self, vectors: ArrayF32) -> ArrayI64:
        """Index (N,) of the centroid of each of ``vectors`` (N, D)."""
        numbers = np.empty(len(vectors), dtype=np.int64)
        start = 0
        while start < len(vectors):
            batch = np.ascontiguousarray(vectors[start : start + self._batch])
            if self._fallback is not None:
                numbers[start : start + len(batch)] = self._fallback.nearest(batch)
            elif (nearest := self._look_up(batch)) is not None:
                numbers[start : start + len(batch)] = nearest
            else:
                continue
            start += len(batch)
        return numbers

    def _look_up(self, batch: ArrayF32) -> ArrayI64 | None:
        """Assign a batch; None if it did not fit."""
        try:
            _, nearest = self._index.search(batch, 1)
        except RuntimeError:
            self._batch //= 2
            if self._batch < _MIN_BATCH:
                logger.warning("index: the GPU failed; the CPU takes over", exc_info=True)
                self._batch, self._fallback = _BATCH, Centroids(self.centroids)
            return None
        return np.asarray(nearest[:, 0], dtype=np.int64)


def fit_centroids_on_gpu(sample: ArrayF32, count: int) -> GpuCentroids | None:
    """Fit ``count`` centroids to a sample (S, D); None if no GPU can.

    Raises:
        BadInputError: The environment names a device that does not exist.
    """
    dim = sample.shape[1]
    # the whole sample may be on the GPU while the index is searched
    index = gpu_flat_index(dim, nbytes=sample.nbytes) if count < len(sample) else None
    if index is None:
        return None
    clustering = faiss.Clustering(dim, count)
    clustering.niter, clustering.seed = ROUNDS, SEED
    clustering.max_points_per_centroid, clustering.min_points_per_centroid = POINTS, 1
    try:
        clustering.train(np.ascontiguousarray(sample), index)
        centroids = (
            faiss.vector_to_array(clustering.centroids).reshape(count, dim).astype(np.float32)
        )
        index.reset()
        index.add(centroids)
    except RuntimeError:
        logger.warning("index: the GPU cannot compute %d centroids", count, exc_info=True)
        return None
    return GpuCentroids(centroids, index)
