"""A small convolutional network over stain concentrations: our own patch encoder."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

IN_CHANNELS = 3
"""Haematoxylin, eosin, mean optical density, each relative to the region's own strength."""


@dataclass(frozen=True, slots=True)
class PatchCnnConfig:
    """Sizes of a ``PatchCnn``."""

    widths: tuple[int, ...] = (24, 48, 96, 192)  # channels of each stage; each halves the side

    @property
    def out_dim(self) -> int:
        """Length of a patch's features: the last two stages side by side."""
        return self.widths[-2] + self.widths[-1]


class _Stage(nn.Module):
    """Halve the side, then one residual convolution."""

    def __init__(self, in_width: int, width: int) -> None:
        super().__init__()
        self.down = nn.Conv2d(in_width, width, 3, 2, 1, bias=False)
        self.down_norm = nn.BatchNorm2d(width)
        self.conv = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, in_width, h, w) to (B, width, h/2, w/2)."""
        x = torch.relu(self.down_norm(self.down(x)))
        return torch.relu(x + self.norm(self.conv(x)))


class PatchCnn(nn.Module):
    """Strided residual stages; the averages of the last two, so that texture and shape both count.

    Fully convolutional: trained on small crops, used on whole patches.
    """

    def __init__(self, config: PatchCnnConfig) -> None:
        super().__init__()
        self.config = config
        first = config.widths[0]
        self.stem = nn.Sequential(
            nn.Conv2d(IN_CHANNELS, first, 5, 2, 2, bias=False), nn.BatchNorm2d(first), nn.ReLU()
        )
        self.stages = nn.ModuleList(_Stage(a, b) for a, b in pairwise(config.widths))

    def forward(self, x: Tensor) -> Tensor:
        """(B, 3, h, w) stain concentrations to (B, out_dim)."""
        x = self.stem(x)
        pooled = []
        for stage in self.stages:
            x = stage(x)
            pooled.append(x.mean(dim=(2, 3)))
        return torch.cat(pooled[-2:], dim=1)
