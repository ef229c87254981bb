"""ResNet-50 as published, with random weights: what a patch costs the usual way."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
_EXPANSION = 4


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions around a shortcut."""

    def __init__(self, in_dim: int, dim: int, stride: int) -> None:
        super().__init__()
        out_dim = dim * _EXPANSION
        self.body = nn.Sequential(
            *_convolution(in_dim, dim, 1, 1),
            nn.ReLU(inplace=True),
            *_convolution(dim, dim, 3, stride),
            nn.ReLU(inplace=True),
            *_convolution(dim, out_dim, 1, 1),
        )
        same = in_dim == out_dim and stride == 1
        self.shortcut = (
            nn.Identity() if same else nn.Sequential(*_convolution(in_dim, out_dim, 1, stride))
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, 4 dim, H / stride, W / stride)."""
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet50() -> nn.Sequential:
    """(B, 3, 224, 224) to (B, 2048).

    Source: He et al. 2016, table 1 (50 layers); the stride is in the 3 x 3 convolution.
    """
    layers: list[nn.Module] = [*_convolution(3, 64, 7, 2), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, 2, padding=1))
    in_dim = 64
    for stage, (dim, blocks) in enumerate(_STAGES):
        for block in range(blocks):
            layers.append(Bottleneck(in_dim, dim, 2 if block == 0 and stage > 0 else 1))
            in_dim = dim * _EXPANSION
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()


def _convolution(in_dim: int, out_dim: int, side: int, stride: int) -> list[nn.Module]:
    convolution = nn.Conv2d(in_dim, out_dim, side, stride, padding=side // 2, bias=False)
    return [convolution, nn.BatchNorm2d(out_dim)]
