"""K-means clustering."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ml.networks.textons import nearest_word


def k_means(
    points: Tensor, count: int, rounds: int, seed: int, *, start: Tensor | None = None
) -> Tensor:
    """Find (count, D) centres of points (N, D); a centre without points stays.

    Args:
        start: (count, D) initial centres; None for k-means++.

    Source: k-means++ (Arthur and Vassilvitskii 2007), then Lloyd's rounds.
    """
    words = (
        _farthest_points(points, count, np.random.default_rng((seed, 2)))
        if start is None
        else start
    )
    for _ in range(rounds):
        nearest = nearest_word(points, words)
        sums = torch.zeros_like(words).index_add_(0, nearest, points)
        counts = torch.bincount(nearest, minlength=count)[:, None]
        words = torch.where(counts > 0, sums / counts.clamp(min=1), words)
    return words


def _farthest_points(points: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    """Draw initial centres in proportion to the squared distance from the earlier ones."""
    chosen = [int(rng.integers(len(points)))]
    distance = (points - points[chosen[0]]).square().sum(dim=1)
    for _ in range(count - 1):
        total = distance.double().cumsum(0)
        drawn = torch.searchsorted(total, float(rng.random()) * total[-1])
        chosen.append(min(int(drawn), len(points) - 1))
        distance = torch.minimum(distance, (points - points[chosen[-1]]).square().sum(dim=1))
    return points[chosen]
