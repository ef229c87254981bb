"""Centres of inverted lists made and looked up on a GPU, where FAISS was built for one.

A GPU holds a vector against every centre sooner than a processor against a few: no groups are
needed, and each vector gets the nearest centre for certain. The lists differ from a processor's;
how many of them a search visits is measured either way.
"""

from __future__ import annotations

import logging
from typing import Any

import faiss
import numpy as np

from ml.index.base.clusters import POINTS, ROUNDS, SEED, Centres
from ml.index.base.gpu import flat_on_gpu
from ml.types import ArrayF32, ArrayI64

logger = logging.getLogger(__name__)

_BATCH, _BATCH_LEAST = 131_072, 1_024
"""Vectors looked up at once, halved while they do not fit; fewer are not work for a GPU."""


class GpuCentres:
    """Centres (L, D) on a GPU; on the processor from the moment that the GPU fails."""

    def __init__(self, centres: ArrayF32, index: Any) -> None:
        """``index``: a flat index of FAISS with the centres."""
        self.centres, self._index = centres, index
        self._batch = _BATCH
        self._instead: Centres | None = None

    def nearest(self, vectors: ArrayF32) -> ArrayI64:
        """(N,) the centre of each of ``vectors`` (N, D)."""
        found = np.empty(len(vectors), dtype=np.int64)
        start = 0
        while start < len(vectors):
            some = np.ascontiguousarray(vectors[start : start + self._batch])
            if self._instead is not None:
                found[start : start + len(some)] = self._instead.nearest(some)
            elif (at := self._looked_up(some)) is not None:
                found[start : start + len(some)] = at
            else:
                continue
            start += len(some)
        return found

    def _looked_up(self, some: ArrayF32) -> ArrayI64 | None:
        """None if they did not fit: fewer are to be tried, or the processor."""
        try:
            _, at = self._index.search(some, 1)
        except RuntimeError:
            self._batch //= 2
            if self._batch < _BATCH_LEAST:
                logger.warning("index: the GPU failed; the processor takes over", exc_info=True)
                self._batch, self._instead = _BATCH, Centres(self.centres)
            return None
        return np.asarray(at[:, 0], dtype=np.int64)


def centres_on_gpu(sample: ArrayF32, count: int) -> GpuCentres | None:
    """``count`` centres of a sample (S, D) of vectors; None if no GPU can make them.

    Raises:
        BadInputError: the environment names a device that is not there.
    """
    dim = sample.shape[1]
    # the index holds the centres alone, but all of the sample may lie there while it is searched
    index = flat_on_gpu(dim, nbytes=sample.nbytes) if count < len(sample) else None
    if index is None:
        return None
    made = faiss.Clustering(dim, count)
    made.niter, made.seed = ROUNDS, SEED
    made.max_points_per_centroid, made.min_points_per_centroid = POINTS, 1
    try:
        made.train(np.ascontiguousarray(sample), index)
        centres = faiss.vector_to_array(made.centroids).reshape(count, dim).astype(np.float32)
        index.reset()
        index.add(centres)
    except RuntimeError:
        logger.warning("index: the GPU cannot compute %d centres", count, exc_info=True)
        return None
    return GpuCentres(centres, index)
