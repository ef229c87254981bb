"""A map of vectors in two dimensions: exact t-SNE from a PCA start."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from ml.types import ArrayF32, ArrayF64

_PERPLEXITY = 20.0
"""Neighbours that count: fewer than the customary 30, for sets of some dozens of regions."""

_TSNE_STEPS = 500
"""Steps: the map no longer changes visibly after them."""


def tsne(vectors: ArrayF32, *, seed: int, perplexity: float = _PERPLEXITY) -> ArrayF64:
    """(N, 2) float64: exact t-SNE from a PCA start; PCA itself for fewer than five regions.

    Source: van der Maaten and Hinton 2008, with early exaggeration and momentum; exact, so for
        thousands of regions at most. The same vectors and seed give the same map.
    """
    start = _pca(vectors)
    count = len(vectors)
    if count < 5:
        return start
    p = _affinities(cdist(vectors, vectors, "sqeuclidean"), min(perplexity, (count - 1) / 3))
    rng = np.random.default_rng(seed)
    y = start / max(float(start.std()), 1e-12) * 1e-2 + rng.normal(0, 1e-5, (count, 2))
    velocity, gains = np.zeros_like(y), np.ones_like(y)
    rate = max(count / 12.0, 10.0)
    for step in range(_TSNE_STEPS):
        weight = 1 / (1 + cdist(y, y, "sqeuclidean"))
        np.fill_diagonal(weight, 0)
        q = np.maximum(weight / weight.sum(), 1e-12)
        pull = ((12.0 if step < 120 else 1.0) * p - q) * weight
        gradient = 4 * (pull.sum(axis=1)[:, None] * y - pull @ y)
        same = np.sign(gradient) == np.sign(velocity)
        gains = np.maximum(np.where(same, gains * 0.8, gains + 0.2), 0.01)
        velocity = (0.5 if step < 120 else 0.8) * velocity - rate * gains * gradient
        y = y + velocity
    return np.asarray(y - y.mean(axis=0), np.float64)


def _affinities(squared: ArrayF64, perplexity: float) -> ArrayF64:
    """(N, N) symmetric, summing to one: Gaussian neighbourhoods of equal perplexity."""
    count = len(squared)
    low, high = np.zeros(count), np.full(count, np.inf)
    beta = 1 / np.maximum(np.median(squared, axis=1), 1e-12)
    apart = squared + np.where(np.eye(count, dtype=bool), np.inf, 0)
    nearest = apart.min(axis=1, keepdims=True)
    for _ in range(60):
        weight = np.exp(-(apart - nearest) * beta[:, None])
        share = weight / weight.sum(axis=1, keepdims=True)
        entropy = -(share * np.log(np.maximum(share, 1e-300))).sum(axis=1)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, beta, low), np.where(wide, high, beta)
        middle = np.where(np.isinf(high), beta * 2, (low + np.minimum(high, 1e300)) / 2)
        beta = middle
    return np.asarray((share + share.T) / (2 * count), np.float64)


def _pca(vectors: ArrayF32) -> ArrayF64:
    centred = np.asarray(vectors, np.float64) - vectors.mean(axis=0)
    u, s, axes = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(vectors), 2))
    for i in range(min(2, len(s))):
        # The sign of a principal axis is arbitrary: fix it, so that maps can be compared.
        sign = np.sign(axes[i][np.argmax(np.abs(axes[i]))]) or 1.0
        points[:, i] = sign * u[:, i] * s[i]
    return points
