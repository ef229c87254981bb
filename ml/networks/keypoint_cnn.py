"""Seven-layer CNN of key point patches, also evaluated densely over an image."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from ml.errors import BadInputError, ShapeError

_STRIDES = (1, 2, 2, 2, 2, 1)  # of layers 1 to 6, table 1
_TAPS = 8
"""Side of the last convolution's kernel."""

_EPSILON = 1e-5
"""Epsilon of the batch normalisations."""

_STEP_PX = 16
"""Pixels between its taps: the product of the strides."""


@dataclass(frozen=True, slots=True)
class KeypointCnnConfig:
    """Sizes of a ``KeypointCnn``; the defaults are table 1 of the paper."""

    widths: tuple[int, ...] = (16, 16, 32, 64, 128, 128)  # filters of layers 1 to 6
    dim: int = 128  # D, filters of layer 7
    map_px: int = 8  # pixels between columns of the shared map: 4, 8 or 16; see ``shared``


class KeypointCnn(nn.Module):
    """Seven convolutions, each with batch normalisation, all but the last with ReLU.

    A patch is an upright window of 128 x 128 px. ``forward`` takes patches, as in the paper. As the
    windows of neighbouring key points overlap, ``shared`` computes layers 1 to 6 a single time over
    the image, with the strides of later layers replaced by dilations so that a window may start at
    any multiple of ``map_px``. ``at_points`` reads the 8 x 8 taps of layer 7 by bilinear
    interpolation. For windows that start at such a multiple both agree except at the border, where
    a patch is padded with zeros and the image continues.

    Source: graph-ssl-endoscopic-matching, section 3.2.1 and table 1; departs from it by the shared
        layers.
    """

    patch_px = _TAPS * _STEP_PX

    def __init__(self, config: KeypointCnnConfig) -> None:
        super().__init__()
        if config.map_px not in (4, 8, 16):
            raise BadInputError(f"map_px: expected 4, 8 or 16, got {config.map_px}")
        if len(config.widths) != len(_STRIDES):
            raise BadInputError(f"widths: expected 6 numbers, got {len(config.widths)}")
        self.config = config
        inputs = (1, *config.widths)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(a, b, 3, bias=False) for a, b in zip(inputs, config.widths, strict=False)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(width, eps=_EPSILON) for width in config.widths)
        self.last = nn.Conv2d(config.widths[-1], config.dim, _TAPS, bias=False)
        self.last_norm = nn.BatchNorm1d(config.dim)

    def forward(self, patches: Tensor) -> Tensor:
        """(N, 1, 128, 128) patches in [0, 1] to (N, dim), not normalised, as in table 1.

        Raises:
            ShapeError: Patches of another size.
        """
        side = self.patch_px
        if tuple(patches.shape[1:]) != (1, side, side):
            raise ShapeError(
                "patches", expected=f"(N, 1, {side}, {side})", actual=str(tuple(patches.shape))
            )
        x = self._layers(patches, map_px=_STEP_PX)
        out: Tensor = self.last_norm(self.last(x).flatten(1))
        return out

    def shared(self, planes: Tensor) -> Tensor:
        """Layers 1 to 6 over whole images.

        Args:
            planes: (B, 1, H, W) in [0, 1]; H and W multiples of ``map_px``.
        Returns:
            (B, widths[5], H / map_px, W / map_px); column m is at pixel m * map_px.
        Raises:
            ShapeError: Another number of dimensions, or sides that are no multiples.
        """
        step = self.config.map_px
        if planes.ndim != 4 or planes.shape[2] % step or planes.shape[3] % step:
            raise ShapeError(
                "planes",
                expected=f"(B, 1, H, W), sides multiples of {step}",
                actual=str(tuple(planes.shape)),
            )
        return self._layers(planes, map_px=step)

    def at_points(self, shared: Tensor, xy: Tensor) -> Tensor:
        """Layer 7 at key points of one image.

        Args:
            shared: (1, C, h, w), result of ``shared``.
            xy: (N, 2) pixels of its input plane.
        Returns:
            (N, dim), not normalised.
        """
        n = len(xy)
        kernel = self.last.weight.flatten(1)
        taps = self._taps(shared, xy).permute(1, 0, 2, 3).reshape(n, kernel.shape[1])
        out: Tensor = self.last_norm(taps @ kernel.T)
        return out

    def _taps(self, shared: Tensor, xy: Tensor) -> Tensor:
        """Map values (C, N, 8, 8) under the kernel of layer 7, centred on each point."""
        n, size = len(xy), self.config.map_px
        offset = torch.arange(_TAPS, device=xy.device) * _STEP_PX - (self.patch_px - 1) / 2
        column = (xy[:, :1] + offset) / size
        row = (xy[:, 1:] + offset) / size
        grid = torch.stack(
            [
                (2 * column / max(shared.shape[3] - 1, 1) - 1)[:, None, :].expand(n, _TAPS, _TAPS),
                (2 * row / max(shared.shape[2] - 1, 1) - 1)[:, :, None].expand(n, _TAPS, _TAPS),
            ],
            dim=-1,
        )
        sampled = functional.grid_sample(
            shared,
            grid.reshape(1, n * _TAPS, _TAPS, 2).to(shared.dtype),
            mode="bilinear",
            padding_mode="border",
            align_corners=True,
        )
        return sampled.reshape(shared.shape[1], n, _TAPS, _TAPS)

    def _layers(self, x: Tensor, *, map_px: int) -> Tensor:
        """Apply layers 1 to 6; strides beyond ``map_px`` become dilations of the later layers."""
        total_stride, dilation = 1, 1
        weights = (convolution.get_parameter("weight") for convolution in self.convolutions)
        for weight, norm, stride in zip(weights, self.norms, _STRIDES, strict=True):
            layer_stride = stride if total_stride * stride <= map_px else 1
            if self.training:
                x = norm(functional.conv2d(x, weight, None, layer_stride, dilation, dilation))
            else:
                folded, bias = _fold_norm(weight, norm)
                x = functional.conv2d(x, folded, bias, layer_stride, dilation, dilation)
            x = functional.relu(x, inplace=True)
            total_stride, dilation = (
                total_stride * layer_stride,
                dilation * (stride // layer_stride),
            )
        return x


def _fold_norm(weight: Tensor, norm: nn.Module) -> tuple[Tensor, Tensor]:
    """Fold a batch normalisation into the weight and bias of a convolution."""
    mean, variance = norm.get_buffer("running_mean"), norm.get_buffer("running_var")
    scale = norm.get_parameter("weight") / torch.sqrt(variance + _EPSILON)
    return weight * scale[:, None, None, None], norm.get_parameter("bias") - mean * scale


def standardise(patches: Tensor) -> Tensor:
    """Standardise patches (N, 1, S, S) to zero mean and unit deviation; flat ones become zero."""
    centred = patches - patches.mean(dim=(1, 2, 3), keepdim=True)
    variance = centred.square().mean(dim=(1, 2, 3), keepdim=True)
    result: Tensor = centred / (variance.sqrt() + 1e-3)
    return result
