"""Diffusion of similarity over the neighbour graph of an archive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.errors import ShapeError
from ml.types import ArrayF64


@dataclass(frozen=True, slots=True)
class DiffusionConfig:
    """Configuration of diffusion: usual values, with fewer neighbours for small archives."""

    neighbours: int = 5  # mutual neighbours that a region is connected to; also of the query
    alpha: float = 0.9  # share passed to neighbours at each step
    power: float = 3.0  # exponent of the cosine in the weight of an edge
    # Weight of the power of the cosine to the query relative to the diffused score, each divided by
    # its maximum. Without it the same place is found less often than by distance; see the docs.
    direct: float = 4.0
    direct_power: float = 40.0  # exponent of that cosine: a large one keeps the very nearest first
    reach: int = 200  # nearest of a gallery that take part; the suite scores the same with all


def diffused_distances(
    query: ArrayF64,
    gallery: ArrayF64,
    config: DiffusionConfig | None = None,
    *,
    expanded: ArrayF64 | None = None,
) -> ArrayF64:
    """Distances of a gallery to a query by diffusion over the graph of neighbours.

    Args:
        query: (D,).
        gallery: (N, D), only regions that may be found: no others take part in the diffusion.
        expanded: (D,) expanded query that the diffusion starts from; the direct share is that of
            ``query``. By default both are of ``query``.
    Returns:
        (N,), smaller is nearer; regions that the diffusion does not reach, or beyond the ``reach``
        nearest, come last, in order of their distance.
    Raises:
        ShapeError: ``gallery`` is not (N, D).
    Source: Iscen, Tolias, Avrithis, Furon and Chum 2017 (diffusion, equations 1 to 4), solved
        exactly by the closed form of Zhou et al. 2004. Truncated as in Iscen et al., section 4;
        departs from them by the direct share.
    """
    config = config or DiffusionConfig()
    if query.ndim != 1 or gallery.ndim != 2 or gallery.shape[1] != len(query):
        raise ShapeError("gallery", expected=f"(N, {query.size})", actual=str(gallery.shape))
    if len(gallery) < 2:
        return np.zeros(len(gallery))
    direct_distance = np.linalg.norm(gallery - query, axis=1)
    # Regions that are not reached come last, in order of their distance.
    distance = direct_distance / max(float(direct_distance.max()), 1e-12)
    start_query = query if expanded is None else expanded
    start_distance = np.linalg.norm(gallery - start_query, axis=1)
    near = np.argsort(start_distance, kind="stable")[: config.reach]
    start = _weights(start_query[None], gallery[near], config.power)[0]
    direct = _weights(query[None], gallery[near], config.direct_power)[0]
    parts = ((_diffuse(start, gallery[near], config), 1.0), (direct, config.direct))
    score = sum(part / max(float(part.max()), 1e-12) * weight for part, weight in parts)
    distance[near] = np.where(score > 1e-12, -score, distance[near])
    return np.asarray(distance)


def _diffuse(start: ArrayF64, gallery: ArrayF64, config: DiffusionConfig) -> ArrayF64:
    """Diffused scores (N,) from the initial scores ``start`` (N,) of the nearest."""
    if len(gallery) < 2:
        return start
    weights = _mutual_weights(gallery, config)
    degree = weights.sum(axis=1)
    scale = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))
    passed = config.alpha * scale[:, None] * weights * scale[None]
    threshold = np.sort(start)[-min(config.neighbours, len(start))]
    first = np.where(start < threshold, 0.0, start)
    return np.asarray(np.linalg.solve(np.eye(len(gallery)) - passed, first))


def _mutual_weights(gallery: ArrayF64, config: DiffusionConfig) -> ArrayF64:
    """Weights (N, N) between mutual nearest neighbours, 0 elsewhere."""
    weights = _weights(gallery, gallery, config.power)
    np.fill_diagonal(weights, 0)
    count = min(config.neighbours, len(gallery) - 1)
    nearest = np.argpartition(-weights, count - 1, axis=1)[:, :count]
    is_neighbour = np.zeros(weights.shape, bool)
    np.put_along_axis(is_neighbour, nearest, True, axis=1)
    return np.where(is_neighbour & is_neighbour.T, weights, 0.0)


def _weights(a: ArrayF64, b: ArrayF64, power: float) -> ArrayF64:
    # Only NumPy: web processes run this, and SciPy would cost each of them 30 MiB.
    return np.asarray(np.maximum(_unit(a) @ _unit(b).T, 0.0) ** power)


def _unit(rows: ArrayF64) -> ArrayF64:
    """Rows (N, D) scaled to length 1; zero rows stay zero."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows, np.float64), where=length > 0)
