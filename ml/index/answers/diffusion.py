"""Diffusion over the neighbours of an archive: what is near a query through other regions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.errors import ShapeError
from ml.types import ArrayF64


@dataclass(frozen=True, slots=True)
class DiffusionConfig:
    """The usual values of the literature; only the neighbours are fewer, for small archives."""

    neighbours: int = 5  # that each region is joined to, where both name each other; and the query
    alpha: float = 0.9  # share that goes on to neighbours at each step
    power: float = 3.0  # of the cosine in the weight of a joint
    # Of the cosine to the query itself, beside what is handed on; each is divided by its largest.
    # Without it the very same place was found less often than by distance; see the docs.
    direct: float = 2.0
    reach: int = 200  # nearest of a gallery that take part: the suite scores the same with all


def diffused_distances(
    query: ArrayF64, gallery: ArrayF64, config: DiffusionConfig | None = None
) -> ArrayF64:
    """How far each of a gallery is from a query when neighbours pass on what reaches them.

    Args:
        query: (D,). gallery: (N, D), only what may be found: it is all that passes anything on.
    Returns:
        (N,) the smaller the nearer; what nothing reaches, or lies beyond the ``reach`` nearest,
        comes last, in order of its distance.
    Raises:
        ShapeError: another shape.
    Source: Iscen, Tolias, Avrithis, Furon and Chum 2017 (diffusion, equations 1 to 4), solved
        exactly; of Zhou et al. 2004 the closed form. Truncated as in Iscen et al.,
        section 4; departs from them by the direct share.
    """
    config = config or DiffusionConfig()
    if query.ndim != 1 or gallery.ndim != 2 or gallery.shape[1] != len(query):
        raise ShapeError("gallery", expected=f"(N, {query.size})", actual=str(gallery.shape))
    if len(gallery) < 2:
        return np.zeros(len(gallery))
    plain = np.linalg.norm(gallery - query, axis=1)
    # What is not reached is ordered behind all that is, by its distance.
    found = plain / max(float(plain.max()), 1e-12)
    near = np.argsort(plain, kind="stable")[: config.reach]
    start = _weights(query[None], gallery[near], config.power)[0]
    parts = ((_handed_on(start, gallery[near], config), 1.0), (start, config.direct))
    score = sum(part / max(float(part.max()), 1e-12) * weight for part, weight in parts)
    found[near] = np.where(score > 1e-12, -score, found[near])
    return np.asarray(found)


def _handed_on(start: ArrayF64, gallery: ArrayF64, config: DiffusionConfig) -> ArrayF64:
    """(N,) what reaches each region of what the nearest have in ``start``, (N,)."""
    if len(gallery) < 2:
        return start
    weights = _joints(gallery, config)
    degree = weights.sum(axis=1)
    scale = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))
    passed = config.alpha * scale[:, None] * weights * scale[None]
    least = np.sort(start)[-min(config.neighbours, len(start))]
    first = np.where(start < least, 0.0, start)
    return np.asarray(np.linalg.solve(np.eye(len(gallery)) - passed, first))


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
    # NumPy alone: web processes run this, and SciPy would cost each of them 30 MiB.
    return np.asarray(np.maximum(_unit(a) @ _unit(b).T, 0.0) ** power)


def _unit(rows: ArrayF64) -> ArrayF64:
    """(N, D) rows of length 1; one without a length is like none."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows, np.float64), where=length > 0)
