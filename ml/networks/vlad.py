"""Aggregation of the local descriptors of a region to a vector."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


@dataclass(frozen=True, slots=True)
class VladConfig:
    """Sizes of a ``Vlad``."""

    words: int = 64  # of the vocabulary
    in_dim: int = 128  # of a local descriptor
    out_dim: int = 512  # of the vector


class Vlad(nn.Module):
    """VLAD with projection to principal components.

    The unit residuals of the descriptors of each word are added, and each sum is scaled to unit
    length (intra-normalisation), so that repetitive texture does not dominate.

    Attributes:
        words: (words, in_dim) buffer.
        mean: (words * in_dim,) buffer.
        projection: (words * in_dim, out_dim) buffer.
    Source: Jegou et al. 2010, equation 1; Delhumeau et al. 2013 (residual normalisation);
        Arandjelovic and Zisserman 2013, section 4.1 (intra-normalisation).
    """

    words: Tensor
    mean: Tensor
    projection: Tensor

    def __init__(self, config: VladConfig) -> None:
        super().__init__()
        self.config = config
        size = config.words * config.in_dim
        self.register_buffer("words", torch.zeros(config.words, config.in_dim))
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("projection", torch.eye(size, config.out_dim))

    def aggregate(self, rows: Tensor) -> Tensor:
        """Aggregate descriptors (N, in_dim) to (words * in_dim,) of unit length."""
        distance = self.words.square().sum(dim=1) - 2 * rows @ self.words.T
        nearest = distance.argmin(dim=1)
        residual = normalize(rows - self.words[nearest], dim=1)
        sums = torch.zeros_like(self.words).index_add_(0, nearest, residual)
        return normalize(normalize(sums, dim=1).flatten(), dim=0)

    def forward(self, rows: Tensor) -> Tensor:
        """Map descriptors (N, in_dim) of a region, N >= 1, to (out_dim,) of unit length."""
        return normalize((self.aggregate(rows) - self.mean) @ self.projection, dim=0)
