"""Rotation-invariant descriptor network over foveated polar patches.

A patch is sampled on rings around the key point, so that a rotation of the image is a circular
shift of the patch. Circular convolutions are equivariant to it; the last layer computes Fourier
coefficients and removes the phase of a learned reference. No orientation is estimated, so none can
be wrong.
"""

from __future__ import annotations

import copy
import math
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from ml.errors import ShapeError

IN_CHANNELS = 2
"""Normalised grey value, and the share of the sample inside the field of view."""


@dataclass(frozen=True, slots=True)
class TesseraConfig:
    """Sizes of patch sampling and of the network."""

    rings: int = 20  # R, samples along a radius; a multiple of 4
    angles: int = 40  # T, samples around a ring; a multiple of 4
    radius_px: float = 64.0  # outermost ring
    core_px: float = 8.0  # rings are evenly spaced inside this radius, log-spaced outside
    widths: tuple[int, ...] = (16, 32, 32, 64, 64, 96)  # channels of the six convolutions
    dim: int = 128  # D


class _Ring(nn.Module):
    """Convolution, batch norm, ReLU; circular along the angle, zero-padded along the radius."""

    def __init__(
        self, in_width: int, width: int, *, stride: int = 1, rings: int | None = None
    ) -> None:
        """``rings``: Number of input rings, reduced to one; None keeps them."""
        super().__init__()
        rows, zeros = (3, 1) if rings is None else (rings, 0)  # along the radius
        self.conv = nn.Conv2d(in_width, width, (rows, 3), stride, (zeros, 0), bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, in_width, r, t) to (B, width, r / stride, t / stride); r becomes 1 with ``rings``."""
        x = torch.cat([x[..., -1:], x, x[..., :1]], dim=3)
        return functional.relu(self.norm(self.conv(x)), inplace=True)

    def fold(self) -> None:
        """Fold the batch norm into the convolution."""
        if isinstance(self.norm, nn.BatchNorm2d):
            self.conv = fuse_conv_bn_eval(self.conv, self.norm)
            self.norm = nn.Identity()


class TesseraNet(nn.Module):
    """Network from polar patches to rotation-invariant unit descriptors.

    Source: Ebel et al. 2019 (log-polar patches), Mishchuk et al. 2017 (HardNet, training); departs
        from them by the phase reference of each angular frequency.
    """

    basis: Tensor

    def __init__(self, config: TesseraConfig) -> None:
        super().__init__()
        if config.rings % 4 or config.angles % 4 or min(config.rings, config.angles) < 4:
            raise ShapeError(
                "config",
                expected="rings and angles in multiples of 4",
                actual=f"{config.rings} x {config.angles}",
            )
        self.config = config
        a, b, c, d, e, f = config.widths
        self.layers = nn.Sequential(
            _Ring(IN_CHANNELS, a),
            _Ring(a, b, stride=2),
            _Ring(b, c),
            _Ring(c, d, stride=2),
            _Ring(d, e),
            _Ring(e, f, rings=config.rings // 4),
        )
        coarse = config.angles // 4
        self.frequencies = (coarse - 1) // 2
        self.register_buffer("basis", _fourier_basis(coarse, self.frequencies), persistent=False)
        self.reference = nn.Parameter(torch.randn(self.frequencies, f) / math.sqrt(f))
        self.project = nn.Linear(f * (1 + 2 * self.frequencies), config.dim, bias=False)
        self.norm = nn.BatchNorm1d(config.dim, affine=False)

    def forward(self, patches: Tensor, *, half: torch.dtype | None = None) -> Tensor:
        """(B, 2, R, T) polar patches to (B, D) of unit length.

        ``half`` is the precision of the convolutions, None for float32. Later layers use float32.

        Raises:
            ShapeError: Patches of another shape.
        """
        expected = (IN_CHANNELS, self.config.rings, self.config.angles)
        if patches.ndim != 4 or tuple(patches.shape[1:]) != expected:
            raise ShapeError(
                "patches",
                expected=f"(B, {', '.join(map(str, expected))})",
                actual=str(tuple(patches.shape)),
            )
        with nullcontext() if half is None else torch.autocast(patches.device.type, half):
            features = self.layers(patches)[:, :, 0]
        features = features.float()
        rows = self.norm(self.project(self.invariants(features)))
        return functional.normalize(rows, dim=1)

    def folded(self) -> TesseraNet:
        """Copy for inference, with batch norms folded into the convolutions."""
        network = copy.deepcopy(self).eval()
        for layer in network.layers:
            if isinstance(layer, _Ring):
                layer.fold()
        return network

    def invariants(self, features: Tensor) -> Tensor:
        """Map features (B, C, t) around the circle to shift-invariant ones (B, C (1 + 2 K)).

        A rotation of the patch changes the phase of F_k(c), the k-th Fourier coefficient of channel
        c, by the same amount in all channels. The phase of R_k = sum_c a_kc F_k(c) is removed:
        F_k conj(R_k) / |R_k|, which vanishes if R_k is too small to have a reliable phase.
        """
        spectrum = features @ self.basis  # (B, C, 1 + 2 K)
        mean, real, imag = spectrum.tensor_split((1, 1 + self.frequencies), dim=2)
        weight = self.reference.T[None]
        ref_real, ref_imag = (weight * real).sum(1, True), (weight * imag).sum(1, True)
        power = ref_real.square() + ref_imag.square()
        scale = torch.rsqrt(power + 1e-4)
        ref_real, ref_imag = ref_real * scale, ref_imag * scale
        invariant = (real * ref_real + imag * ref_imag, imag * ref_real - real * ref_imag)
        return torch.cat([mean, *invariant], dim=2).flatten(1)


def _fourier_basis(length: int, frequencies: int) -> Tensor:
    """Orthonormal basis (t, 1 + 2 K): mean, cosines, negative sines."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    k = torch.arange(1, frequencies + 1, dtype=torch.float64)[None]
    angle = 2 * math.pi * position * k / length
    parts = [torch.ones(length, 1, dtype=torch.float64), torch.cos(angle), -torch.sin(angle)]
    scale = torch.tensor([1.0] + [math.sqrt(2.0)] * (2 * frequencies), dtype=torch.float64)
    return (torch.cat(parts, dim=1) * scale / math.sqrt(length)).float()
