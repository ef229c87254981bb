"""Query expansion: ask with a region and with what was found for it."""

from __future__ import annotations

import numpy as np

from ml.errors import ShapeError
from ml.types import ArrayF64


def expanded_query(query: ArrayF64, neighbours: ArrayF64) -> ArrayF64:
    """A query moved towards its nearest neighbours, each by its cosine.

    Args:
        query: (D,). neighbours: (K, D), the nearest of those that may be found, K possibly 0.
    Returns:
        (D,) of the query's length: distances to it are on the scale of those to the query.
    Raises:
        ShapeError: another shape.
    Source: Radenovic, Tolias and Chum 2019 (alpha query expansion), with alpha = 1.
    """
    if query.ndim != 1 or neighbours.ndim != 2 or neighbours.shape[1] != len(query):
        raise ShapeError("neighbours", expected=f"(K, {query.size})", actual=str(neighbours.shape))
    length = float(np.linalg.norm(query))
    norms = np.linalg.norm(neighbours, axis=1) * length
    cosine = (neighbours @ query) / np.maximum(norms, 1e-12)
    moved = query + np.maximum(cosine, 0.0) @ neighbours
    return np.asarray(moved * (length / max(float(np.linalg.norm(moved)), 1e-12)))
