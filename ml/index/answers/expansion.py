"""Queries moved: by what was found for them, or by what a person marked."""

from __future__ import annotations

import numpy as np

from ml.errors import ShapeError
from ml.types import ArrayF64

LIKED_WEIGHT, UNLIKED_WEIGHT = 0.75, 0.15
"""What Manning, Raghavan and Schuetze (2008, section 9.1.1) call reasonable: what a person wants
tells more than what she does not."""


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


def refined_query(query: ArrayF64, liked: ArrayF64, unliked: ArrayF64) -> ArrayF64:
    """A query moved towards examples that a person wants and away from those that she does not.

    Args:
        query: (D,). liked, unliked: (L, D) and (U, D), each possibly empty.
    Returns:
        (D,) of the query's length: distances to it are on the scale of those to the query. The
        query itself where the examples leave nothing of it.
    Raises:
        ShapeError: another shape.
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
