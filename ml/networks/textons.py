"""A dictionary of textons: local shapes of the stains, and how often each occurs in a patch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

_CLIP = 4.0
"""Measurements are cut at this many standard deviations: beyond, they say nothing new."""

MEASURES = 4
"""Of one stain at one scale: value, gradient, Laplacian, elongation; none depends on direction."""
CHANNELS = 2
"""Haematoxylin and eosin, each normalised by its surroundings."""


@dataclass(frozen=True, slots=True)
class TextonConfig:
    """Sizes of a ``TextonBank`` on locally normalised stains, and how those are normalised."""

    words: int = 256  # textons
    scales_px: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)  # deviations of the Gaussians, 1 um at 10x
    stride_px: int = 5  # distance of the points measured
    border_px: int = 8  # left out along the edge of a patch
    sigma_px: float = 30.0  # reach of the surroundings: some five nuclei, less than a gland
    own_vectors: bool = False  # unmixed by vectors of the patch, not by the published ones
    floor_od: float = 0.05  # least deviation: the noise of empty glass is not made into texture

    @property
    def jet_dim(self) -> int:
        """Measurements at one point."""
        return CHANNELS * MEASURES * len(self.scales_px)


class TextonBank(nn.Module):
    """Share of each texton among the points of a patch.

    Source: Varma and Zisserman 2005 (rotation-invariant textons, section 3); departs from it by the
        whitening before the dictionary and the square root of the shares (Hellinger distance).

    Attributes:
        mean, deviation: (jet_dim,) buffers.
        whiten: (jet_dim, jet_dim) buffer.
        words: (words, jet_dim) buffer, in whitened space.
    """

    mean: Tensor
    deviation: Tensor
    whiten: Tensor
    words: Tensor

    def __init__(self, config: TextonConfig) -> None:
        super().__init__()
        self.config = config
        dim = config.jet_dim
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("deviation", torch.ones(dim))
        self.register_buffer("whiten", torch.eye(dim))
        self.register_buffer("words", torch.zeros(config.words, dim))

    def whitened(self, jets: Tensor) -> Tensor:
        """(N, jet_dim) measurements, standardised, clipped and whitened."""
        return ((jets - self.mean) / self.deviation).clamp(-_CLIP, _CLIP) @ self.whiten

    def forward(self, jets: Tensor) -> Tensor:
        """(N, jet_dim) measurements of one patch, to (words,) square roots of shares."""
        nearest = nearest_word(self.whitened(jets), self.words)
        counts = torch.bincount(nearest, minlength=len(self.words))
        return (counts / len(jets)).sqrt()


def nearest_word(points: Tensor, words: Tensor) -> Tensor:
    """(N,) int64: for each point (N, D) the nearest of the words (K, D)."""
    return (words.square().sum(dim=1) - 2 * points @ words.T).argmin(dim=1)
