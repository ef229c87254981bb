"""Texton dictionary: histogram of local stain structures in a patch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

_CLIP = 4.0
"""Measurements are clipped to this many standard deviations."""

MEASURES = 4
"""Rotation-invariant measures of a stain at a scale: value, gradient, Laplacian, elongation."""
CHANNELS = 2
"""Haematoxylin and eosin, locally normalised."""


@dataclass(frozen=True, slots=True)
class TextonConfig:
    """Sizes of a ``TextonBank``, and local normalisation of the stains."""

    words: int = 256  # textons
    scales_px: tuple[float, ...] = (
        1.0,
        2.0,
        4.0,
        8.0,
    )  # standard deviations of the Gaussians, 1 um at 10x
    stride_px: int = 5  # distance of sample points
    border_px: int = 8  # margin of a patch without sample points
    sigma_px: float = 30.0  # of local normalisation: about five nuclei, less than a gland
    own_vectors: bool = False  # unmix by stain vectors of the patch, not by the published ones
    floor_od: float = 0.05  # lower bound of the deviation, above the noise of empty glass

    @property
    def jet_dim(self) -> int:
        """Number of measurements at a point."""
        return CHANNELS * MEASURES * len(self.scales_px)


class TextonBank(nn.Module):
    """Histogram of textons over the sample points of a patch.

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

    def whiten_jets(self, jets: Tensor) -> Tensor:
        """Standardise, clip and whiten measurements (N, jet_dim)."""
        return ((jets - self.mean) / self.deviation).clamp(-_CLIP, _CLIP) @ self.whiten

    def forward(self, jets: Tensor) -> Tensor:
        """Map measurements (N, jet_dim) of one patch to the square roots of shares (words,)."""
        nearest = nearest_word(self.whiten_jets(jets), self.words)
        counts = torch.bincount(nearest, minlength=len(self.words))
        return (counts / len(jets)).sqrt()


def nearest_word(points: Tensor, words: Tensor) -> Tensor:
    """Index (N,) int64 of the nearest word (K, D) for each point (N, D)."""
    return (words.square().sum(dim=1) - 2 * points @ words.T).argmin(dim=1)
