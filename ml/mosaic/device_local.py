"""``local_cells`` and ``local_gain`` on a device: many pairs of keyframes compared at once.

The same px and sums. Values between px are exact here (OpenCV rounds to a thirty-second of a px),
and the spread of the differences is that of all px, not of some: what a cell pulls agrees with the
processor's to a tenth of its own uncertainty.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ml.keypoints.device.planes import looked_up, warped
from ml.mosaic.device_direct import spread_where
from ml.mosaic.differences import TUKEY
from ml.mosaic.direct_views import FINE_SIGMA
from ml.mosaic.local_cells import (
    LEAST_OVERLAP,
    Cells,
    cells_of_sums,
    summing,
)
from ml.mosaic.local_views import LevelPairs
from ml.networks.device import Compute, in_batches
from ml.types import ArrayF64

PAIRS = 64
"""Compared at once: with views of 480 x 360 px their planes and products are some 850 MB."""

View = tuple[Tensor, Tensor]
"""(V, 1, h, w) float32 images, and 1 where each is trusted."""


def cells_on(compute: Compute, pairs: LevelPairs, meshes: ArrayF64) -> Iterator[Cells | None]:
    """What ``cells_of_pair`` finds for each of the pairs, views straightened by ``meshes``."""

    def step(part: slice) -> list[Cells | None]:
        with torch.inference_mode():
            a, b, ways = _sides(compute, pairs, part, meshes)
            lack, both, is_enough = _difference(a, b, ways)
            sums = _sums(a[0], lack, both).double().cpu().numpy()
            return _cells(sums, is_enough.cpu().numpy(), (a[0].shape[2], a[0].shape[3]))

    for found in in_batches(step, len(pairs.rows), PAIRS):
        yield from found


def energies_on(
    compute: Compute, pairs: LevelPairs, plain: ArrayF64, meshes: ArrayF64
) -> Iterator[tuple[float, float]]:
    """Squared differences of each pair's views by two sets of meshes: see ``lowered_share``."""

    def step(part: slice) -> list[tuple[float, float]]:
        with torch.inference_mode():
            (lack, both, seen), (bent, bent_both, bent_seen) = (
                _difference(*_sides(compute, pairs, part, own)) for own in (plain, meshes)
            )
            most = TUKEY * spread_where(lack.flatten(1), both.flatten(1) > 0)
            found = torch.stack([_energy(lack, both, most), _energy(bent, bent_both, most)], dim=1)
            kept = found[seen & bent_seen].double().cpu().numpy()
            return [(float(before), float(after)) for before, after in kept]

    for found in in_batches(step, len(pairs.rows), PAIRS):
        yield from found


def _sides(
    compute: Compute, pairs: LevelPairs, part: slice, meshes: ArrayF64
) -> tuple[View, View, ArrayF64]:
    """The straightened views a and b of some pairs, and the way from one to the other."""
    some = pairs.rows[part]
    rows = sorted({row for pair in some for row in pair})
    at = {row: i for i, row in enumerate(rows)}
    images = compute.sent(np.asarray(pairs.images[rows], np.float32))[:, None]
    masks = compute.sent(np.asarray(pairs.masks[rows], np.float32))[:, None]
    view = _straightened(images, masks, compute.sent(meshes[rows].astype(np.float32)))
    a, b = (
        torch.tensor([at[pair[side]] for pair in some], device=compute.device) for side in (0, 1)
    )
    ways = np.stack(pairs.b_from_a[part]).astype(np.float64)
    return (view[0][a], view[1][a]), (view[0][b], view[1][b]), ways


def _straightened(images: Tensor, masks: Tensor, meshes: Tensor) -> View:
    """See ``straightened``. meshes: (V, 9, 9, 2)."""
    height, width = images.shape[2:]
    size = (height, width)
    shift = functional.interpolate(
        meshes.permute(0, 3, 1, 2), size=size, mode="bilinear", align_corners=True
    )
    rows, columns = torch.meshgrid(
        torch.arange(height, device=images.device, dtype=torch.float32),
        torch.arange(width, device=images.device, dtype=torch.float32),
        indexing="ij",
    )
    xy = torch.stack([columns, rows], dim=2) + shift.permute(0, 2, 3, 1)
    seen = looked_up(masks, xy, border="zeros", mode="nearest")
    return looked_up(images, xy, border="zeros"), (seen > 0).float()


def _difference(a: View, b: View, ways: ArrayF64) -> tuple[Tensor, Tensor, Tensor]:
    """(B, 1, h, w) b less a, px of a, and 1 where both are trusted; (B,) whether that is enough."""
    height, width = a[0].shape[2:]
    other = warped(b[0], ways, (width, height), border="zeros")
    seen = warped(b[1], ways, (width, height), border="zeros", mode="nearest")
    both = a[1] * (seen > 0)
    count, whole = both.sum(dim=(1, 2, 3)), a[1].sum(dim=(1, 2, 3))
    is_enough = (count > 0) & (count >= LEAST_OVERLAP * whole)
    return torch.where(both > 0, other - a[0], 0.0), both, is_enough


def _sums(image: Tensor, lack: Tensor, both: Tensor) -> Tensor:
    """(B, 5, 8, 8): xx, xy, yy of the slope, x and y times the difference, summed in cells."""
    spread = spread_where(lack.flatten(1), both.flatten(1) > 0)[:, None, None, None]
    ratio = (lack.abs() / (TUKEY * spread)).clamp(max=1)
    weight = both * (1 - ratio**2) ** 2 / (spread * 2 * np.sqrt(np.pi) * FINE_SIGMA) ** 2
    x, y = _slopes(image + 0.5 * lack)
    products = torch.cat([x * x, x * y, y * y, x * lack, y * lack], dim=1) * weight
    down, across = (torch.from_numpy(summing(side)).to(image.device) for side in image.shape[2:])
    return down @ products @ across.mT


def _slopes(image: Tensor) -> tuple[Tensor, Tensor]:
    """Sobel's, per px; mirrored beyond the rim."""
    wide = functional.pad(image, (1, 1, 1, 1), mode="reflect")
    tall = 0.25 * (wide[..., :-2, :] + 2 * wide[..., 1:-1, :] + wide[..., 2:, :])
    broad = 0.25 * (wide[..., :-2] + 2 * wide[..., 1:-1] + wide[..., 2:])
    return 0.5 * (tall[..., 2:] - tall[..., :-2]), 0.5 * (broad[..., 2:, :] - broad[..., :-2, :])


def _cells(sums: ArrayF64, is_enough: np.ndarray, shape: tuple[int, int]) -> list[Cells | None]:
    flat = sums.reshape(len(sums), 5, -1).swapaxes(1, 2)
    return [
        cells_of_sums(one, shape) if seen else None
        for one, seen in zip(flat, is_enough, strict=True)
    ]


def _energy(lack: Tensor, both: Tensor, most: Tensor) -> Tensor:
    """(B,): mean square of the differences, none counting for more than ``most``, (B,)."""
    capped = torch.minimum(lack.abs(), most[:, None, None, None])
    count = both.sum(dim=(1, 2, 3)).clamp(min=1)
    return (capped.square() * both).sum(dim=(1, 2, 3)) / count
