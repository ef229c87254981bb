"""Patch encoder: a residual network over optical densities standardised per patch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ml.errors import UnknownNameError

STAGES, MOMENTS = "stages", "moments"
READOUTS = (STAGES, MOMENTS)
IN_CHANNELS = 3
"""Optical density of red, green and blue."""
_MIN_DEVIATION = 0.04
"""Optical density: lower bound, so that the noise of nearly blank patches is not amplified."""


@dataclass(frozen=True, slots=True)
class PatchCnnConfig:
    """Sizes of a ``PatchCnn``."""

    widths: tuple[int, ...] = (40, 80, 160, 320)  # channels by stage; later stages halve the side
    blocks: tuple[int, ...] = (1, 1, 1, 1)  # residual blocks of each stage
    readout: str = (
        STAGES  # means of the last two stages, or mean and standard deviation of the last
    )

    @property
    def out_dim(self) -> int:
        """Length of a patch's features."""
        return self.widths[-1] + (self.widths[-1] if self.readout == MOMENTS else self.widths[-2])


class _Residual(nn.Module):
    """Basic residual block: two 3 x 3 convolutions; the first may halve the side."""

    def __init__(self, in_width: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(in_width, width, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(width)
        keeps_shape = stride == 1 and in_width == width
        self.shortcut = (
            nn.Identity() if keeps_shape else nn.Conv2d(in_width, width, 1, stride, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, in_width, h, w) to (B, width, h / stride, w / stride)."""
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.shortcut(x) + self.second_norm(self.second(y)))


class PatchCnn(nn.Module):
    """Residual stages and a readout.

    Trained with the means of the last two stages. For a patch of several windows, the mean and the
    standard deviation of the last stage are more informative.

    Source: He et al. 2016 (basic blocks), with a narrow strided stem for small crops.
    Raises:
        UnknownNameError: Unknown readout.
    """

    def __init__(self, config: PatchCnnConfig) -> None:
        super().__init__()
        if config.readout not in READOUTS:
            raise UnknownNameError("readout", config.readout, list(READOUTS))
        self.config = config
        first = config.widths[0]
        self.stem = nn.Sequential(
            nn.Conv2d(IN_CHANNELS, first, 5, 2, 2, bias=False), nn.BatchNorm2d(first), nn.ReLU()
        )
        self.stages = nn.ModuleList()
        width = first
        for number, (out_width, blocks) in enumerate(
            zip(config.widths, config.blocks, strict=True)
        ):
            strides = [2 if number else 1] + [1] * (blocks - 1)
            stage = []
            for stride in strides:
                stage.append(_Residual(width, out_width, stride))
                width = out_width
            self.stages.append(nn.Sequential(*stage))

    def forward(self, x: Tensor) -> Tensor:
        """(B, 3, h, w) standardised optical densities to (B, out_dim) float32.

        With "moments" the second half is the mean square, which can be averaged over windows.
        """
        x = self.stem(x)
        pooled = []
        for stage in self.stages:
            x = stage(x)
            pooled.append(x.float().mean(dim=(2, 3)))
        if self.config.readout == MOMENTS:
            return torch.cat([pooled[-1], x.float().square().mean(dim=(2, 3))], dim=1)
        return torch.cat(pooled[-2:], dim=1)

    def combine_windows(self, features: Tensor) -> Tensor:
        """Combine features (B, W, out_dim) of the W windows of each patch to (B, out_dim).

        With "moments" the second half is the standard deviation over all positions and windows.
        """
        mean_features = features.mean(dim=1)
        if self.config.readout != MOMENTS:
            return mean_features
        mean, square = mean_features.chunk(2, dim=1)
        return torch.cat([mean, (square - mean.square()).clamp(min=0).sqrt()], dim=1)


def standardise(od: Tensor) -> Tensor:
    """Standardise each channel of each patch of optical densities (B, 3, h, w).

    The result shows where tissue is denser than its surroundings, independently of the strength and
    hue of the stain.
    """
    mean = od.mean(dim=(2, 3), keepdim=True)
    deviation = od.std(dim=(2, 3), keepdim=True)
    return (od - mean) / deviation.clamp(min=_MIN_DEVIATION)
