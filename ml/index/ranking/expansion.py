"""Query expansion by nearest neighbours, and relevance feedback."""

from __future__ import annotations

import numpy as np

from ml.errors import ShapeError
from ml.types import ArrayF64

LIKED_WEIGHT, UNLIKED_WEIGHT = 0.75, 0.15
"""Weights of Manning, Raghavan and Schuetze (2008, section 9.1.1): positive examples are more
informative than negative ones."""


def expanded_query(query: ArrayF64, neighbours: ArrayF64) -> ArrayF64:
    """Move a query towards its nearest neighbours, weighted by their cosine.

    Args:
        query: (D,).
        neighbours: (K, D), the nearest permitted ones; K may be 0.
    Returns:
        (D,) of the query's length, so that distances to it have the scale of those to the query.
    Raises:
        ShapeError: Another shape.
    Source: Radenovic, Tolias and Chum 2019 (alpha query expansion), with alpha = 1.
    """
    if query.ndim != 1 or neighbours.ndim != 2 or neighbours.shape[1] != len(query):
        raise ShapeError("neighbours", expected=f"(K, {query.size})", actual=str(neighbours.shape))
    length = float(np.linalg.norm(query))
    norms = np.linalg.norm(neighbours, axis=1) * length
    cosine = (neighbours @ query) / np.maximum(norms, 1e-12)
    moved = query + np.maximum(cosine, 0.0) @ neighbours
    return np.asarray(moved * (length / max(float(np.linalg.norm(moved)), 1e-12)))


def refined_query(query: ArrayF64, liked: ArrayF64, unliked: ArrayF64) -> ArrayF64:
    """Move a query towards examples marked as alike and away from those marked as unlike.

    Args:
        query: (D,).
        liked, unliked: (L, D) and (U, D), each possibly empty.
    Returns:
        (D,) of the query's length, so that distances to it have the scale of those to the query;
        the query itself if the sum is nearly zero.
    Raises:
        ShapeError: Another shape.
    Source: Rocchio 1971.
    """
    for name, examples in (("liked", liked), ("unliked", unliked)):
        if query.ndim != 1 or examples.ndim != 2 or examples.shape[1] != len(query):
            raise ShapeError(name, expected=f"(N, {query.size})", actual=str(examples.shape))
    moved = query.astype(np.float64)
    if len(liked):
        moved = moved + LIKED_WEIGHT * liked.mean(axis=0)
    if len(unliked):
        moved = moved - UNLIKED_WEIGHT * unliked.mean(axis=0)
    length, new_length = float(np.linalg.norm(query)), float(np.linalg.norm(moved))
    if new_length < 1e-6 * max(length, 1e-12):
        return query.astype(np.float64)
    return np.asarray(moved * (length / new_length))
