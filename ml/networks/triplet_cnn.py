"""CNN of the adaptive triplet loss."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from ml.errors import ShapeError
from ml.networks.keypoint_cnn import standardise


@dataclass(frozen=True, slots=True)
class TripletCnnConfig:
    """Sizes of a ``TripletCnn``; the paper specifies only the values 128 and the layers."""

    patch_px: int = 128  # side of a patch
    channels: int = 24  # of the convolution
    kernel_px: int = 9  # of the convolution
    stride_px: int = 4  # of the convolution; 1 would make the next layer 16 times as large
    hidden: tuple[int, ...] = (256, 256, 256)  # of the first three fully connected layers
    dim: int = 128  # D, the fourth


class TripletCnn(nn.Module):
    """Convolution, ReLU, 2 x 2 max pooling, four fully connected layers, L2 normalisation.

    Source: adaptive-triplet-endoscopic-matching, section 2.1 and figure 1. Departs from it by
        patches of zero mean and unit deviation (the light of an endoscope varies within a frame),
        and by a strided convolution: at stride 1 the first fully connected layer would have
        64 * 64 * channels * 256 weights, a hundred megabytes.
    """

    def __init__(self, config: TripletCnnConfig) -> None:
        super().__init__()
        self.config = config
        self.convolution = nn.Conv2d(
            1, config.channels, config.kernel_px, config.stride_px, config.kernel_px // 2
        )
        side = -(-config.patch_px // config.stride_px) // 2
        widths = (config.channels * side * side, *config.hidden, config.dim)
        self.connected = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))

    def forward(self, patches: Tensor) -> Tensor:
        """(N, 1, S, S) patches in [0, 1] to (N, dim) unit vectors.

        Raises:
            ShapeError: Patches of another size.
        """
        side = self.config.patch_px
        if tuple(patches.shape[1:]) != (1, side, side):
            raise ShapeError(
                "patches", expected=f"(N, 1, {side}, {side})", actual=str(tuple(patches.shape))
            )
        x = functional.max_pool2d(torch.relu(self.convolution(standardise(patches))), 2)
        x = x.flatten(1)
        for layer in self.connected[:-1]:
            x = torch.relu(layer(x))
        return functional.normalize(self.connected[-1](x), dim=1)
