"""Diffusion over the neighbours of an archive: what is near a query by way of others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from ml.errors import ShapeError
from ml.types import ArrayF64


@dataclass(frozen=True, slots=True)
class DiffusionConfig:
    """The usual values of the literature; only the neighbours are fewer, for small archives."""

    neighbours: int = 5  # that each region is joined to, where both name each other; and the query
    alpha: float = 0.9  # share that goes on to neighbours at each step
    power: float = 3.0  # of the cosine in the weight of a joint


def diffused_distances(
    query: ArrayF64, gallery: ArrayF64, config: DiffusionConfig | None = None
) -> ArrayF64:
    """How far each of a gallery is from a query when neighbours pass on what reaches them.

    Args:
        query: (D,). gallery: (N, D), only what may be found: it is all that passes anything on.
    Returns:
        (N,) the smaller the nearer; what nothing reaches comes last, in order of its distance.
    Raises:
        ShapeError: another shape.
    Source: Iscen, Tolias, Avrithis, Furon and Chum 2017 (diffusion, equations 1 to 4), solved
        exactly; of Zhou et al. 2004 the closed form.
    """
    config = config or DiffusionConfig()
    if query.ndim != 1 or gallery.ndim != 2 or gallery.shape[1] != len(query):
        raise ShapeError("gallery", expected=f"(N, {query.size})", actual=str(gallery.shape))
    if len(gallery) < 2:
        return np.zeros(len(gallery))
    weights = _joints(gallery, config)
    degree = weights.sum(axis=1)
    scale = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))
    passed = config.alpha * scale[:, None] * weights * scale[None]
    start = _weights(query[None], gallery, config.power)[0]
    start[start < np.sort(start)[-min(config.neighbours, len(start))]] = 0
    reached = np.linalg.solve(np.eye(len(gallery)) - passed, start)
    plain = cdist(query[None], gallery)[0]
    # What is not reached is ordered behind all that is, by its distance.
    far = plain / max(float(plain.max()), 1e-12)
    return np.where(reached > 1e-12, -reached, far)


def _joints(gallery: ArrayF64, config: DiffusionConfig) -> ArrayF64:
    """(N, N) weights between regions that are among each other's nearest."""
    weights = _weights(gallery, gallery, config.power)
    np.fill_diagonal(weights, 0)
    count = min(config.neighbours, len(gallery) - 1)
    nearest = np.argpartition(-weights, count - 1, axis=1)[:, :count]
    named = np.zeros(weights.shape, bool)
    np.put_along_axis(named, nearest, True, axis=1)
    return np.where(named & named.T, weights, 0.0)


def _weights(a: ArrayF64, b: ArrayF64, power: float) -> ArrayF64:
    return np.asarray(np.maximum(1 - cdist(a, b, "cosine"), 0.0) ** power)
