"""Our own patch encoder: a residual network over densities standardised patch by patch."""

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
"""Optical density: a patch that varies less is nearly blank, and its noise is not blown up."""


@dataclass(frozen=True, slots=True)
class PatchCnnConfig:
    """Sizes of a ``PatchCnn``."""

    widths: tuple[int, ...] = (40, 80, 160, 320)  # channels by stage; later stages halve the side
    blocks: tuple[int, ...] = (1, 1, 1, 1)  # residual blocks of each stage
    readout: str = STAGES  # averages of the last two stages; or average and deviation of the last

    @property
    def out_dim(self) -> int:
        """Length of a patch's features."""
        return self.widths[-1] + (self.widths[-1] if self.readout == MOMENTS else self.widths[-2])


class _Residual(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut; the first may halve the side."""

    def __init__(self, in_width: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(in_width, width, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(width)
        same = stride == 1 and in_width == width
        self.shortcut = nn.Identity() if same else nn.Conv2d(in_width, width, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, in_width, h, w) to (B, width, h / stride, w / stride)."""
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.shortcut(x) + self.second_norm(self.second(y)))


class PatchCnn(nn.Module):
    """Residual stages, and what is read out of them.

    It is trained by the averages of its last two stages. Of a patch of several windows the average
    and the deviation of the last stage say more: what is there, and how unevenly.

    Source: He et al. 2016 (basic blocks), with a narrow strided stem for small crops.
    Raises:
        UnknownNameError: no such readout.
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
        for number, (wide, blocks) in enumerate(zip(config.widths, config.blocks, strict=True)):
            strides = [2 if number else 1] + [1] * (blocks - 1)
            stage = []
            for stride in strides:
                stage.append(_Residual(width, wide, stride))
                width = wide
            self.stages.append(nn.Sequential(*stage))

    def forward(self, x: Tensor) -> Tensor:
        """(B, 3, h, w) standardised optical densities to (B, out_dim) float32.

        With "moments" the second half is the mean square, so that windows can be averaged.
        """
        x = self.stem(x)
        pooled = []
        for stage in self.stages:
            x = stage(x)
            pooled.append(x.float().mean(dim=(2, 3)))
        if self.config.readout == MOMENTS:
            return torch.cat([pooled[-1], x.float().square().mean(dim=(2, 3))], dim=1)
        return torch.cat(pooled[-2:], dim=1)

    def of_windows(self, found: Tensor) -> Tensor:
        """(B, W, out_dim) of the W windows of each patch to the (B, out_dim) of the patches.

        With "moments" the second half is the deviation over all places of all windows.
        """
        together = found.mean(dim=1)
        if self.config.readout != MOMENTS:
            return together
        mean, square = together.chunk(2, dim=1)
        return torch.cat([mean, (square - mean.square()).clamp(min=0).sqrt()], dim=1)


def standardised(od: Tensor) -> Tensor:
    """(B, 3, h, w) optical densities, each channel of each patch to mean 0 and deviation 1.

    What is left says where the tissue is denser than its own surroundings, not how strongly or in
    which hue a laboratory stains.
    """
    mean = od.mean(dim=(2, 3), keepdim=True)
    deviation = od.std(dim=(2, 3), keepdim=True)
    return (od - mean) / deviation.clamp(min=_MIN_DEVIATION)
